package cachenode

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"
)

// maxName bounds a client's name, in bytes.
const maxName = 256

// hello chooses the protocol, and may carry the password and the client's name.
func (c *resp) hello() {
	version := 2
	if c.three {
		version = 3
	}
	if len(c.args) > 1 {
		var err error
		switch version, err = strconv.Atoi(string(c.args[1])); {
		case err != nil:
			c.fail("ERR Protocol version is not an integer or out of range")
			return
		case version != 2 && version != 3:
			c.fail("NOPROTO unsupported protocol version")
			return
		}
	}
	name := c.name
	for i := 2; i < len(c.args); i++ {
		switch {
		case sameWord(c.args[i], "auth") && i+2 < len(c.args):
			if refusal := c.authenticate(string(c.args[i+1]), c.args[i+2]); refusal != "" {
				c.fail(refusal)
				return
			}
			i += 2
		case sameWord(c.args[i], "setname") && i+1 < len(c.args):
			if name = string(c.args[i+1]); !validName(name) {
				c.fail(badName)
				return
			}
			i++
		default:
			c.fail("ERR Syntax error in HELLO option '" + plain(c.args[i]) + "'")
			return
		}
	}
	if !c.trusted {
		c.fail("NOAUTH HELLO must be called with the client already authenticated, otherwise the HELLO <proto> AUTH <user> <pass> " +
			"option can be used to authenticate the client and select the RESP protocol version at the same time")
		return
	}
	c.three, c.name = version == 3, name
	c.dictionary(7)
	c.texts("server", "redis", "version", spokenVersion, "proto")
	c.integer(version)
	c.text("id")
	c.integer(int(c.id))
	c.texts("mode", "standalone", "role", "master", "modules")
	c.array(0)
}

const badName = "ERR Client names cannot contain spaces, newlines or special characters."

// validName accepts only visible ASCII, as Redis does.
func validName(name string) bool {
	return len(name) <= maxName && !strings.ContainsFunc(name, func(r rune) bool { return r < '!' || r > '~' })
}

// client answers what client libraries send about themselves when they connect.
func (c *resp) client() {
	switch args := c.args[1:]; {
	case sameWord(args[0], "id") && len(args) == 1:
		c.integer(int(c.id))
	case sameWord(args[0], "getname") && len(args) == 1:
		if c.name == "" {
			c.null()
			return
		}
		c.text(c.name)
	case sameWord(args[0], "setname") && len(args) == 2:
		if !validName(string(args[1])) {
			c.fail(badName)
			return
		}
		c.name = string(args[1])
		c.ok()
	case sameWord(args[0], "setinfo") && len(args) == 3:
		c.ok() // it would only be listed
	default:
		c.unknown("CLIENT")
	}
}

// unknown refuses an unknown subcommand.
func (c *resp) unknown(command string) {
	c.fail(fmt.Sprintf("ERR unknown subcommand or wrong number of arguments for '%s'. This node has a few %s commands only.", plain(c.args[1]), command))
}

// setting is a setting that CONFIG GET reports. None can be changed.
type setting struct{ name, value string }

func (n *Node) settings() []setting {
	return []setting{
		{"appendonly", "no"},
		{"databases", strconv.Itoa(databases)},
		{"maxclients", strconv.Itoa(n.cfg.MaxConnections)},
		{"maxmemory", strconv.FormatInt(n.cfg.Memory, 10)},
		{"maxmemory-policy", "allkeys-lru"},
		{"save", ""},
	}
}

func (c *resp) config() {
	if !sameWord(c.args[1], "get") || len(c.args) < 3 {
		c.unknown("CONFIG")
		return
	}
	var found []string
	for _, s := range c.node.settings() {
		for _, pattern := range c.args[2:] {
			if len(pattern) <= maxPattern && glob(bytes.ToLower(pattern), s.name) {
				found = append(found, s.name, s.value)
				break
			}
		}
	}
	c.dictionary(len(found) / 2)
	c.texts(found...)
}
