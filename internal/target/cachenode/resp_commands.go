package cachenode

import "strings"

// respCommand is one command. min and max bound the number of its arguments, the name included.
type respCommand struct {
	name     string
	min, max int
	verb     verb
	keys     keyArgs
	group    string   // in Redis' documentation
	args     []string // those in brackets are optional
	summary  string
	run      func(*resp) // nil for COMMAND, which describes the table
}

// keyArgs says which arguments are keys, counted from 1: every step-th from first to last. A negative last counts from the end.
type keyArgs struct{ first, last, step int }

var (
	noKey   = keyArgs{}
	oneKey  = keyArgs{1, 1, 1}
	allKeys = keyArgs{1, -1, 1}
	inPairs = keyArgs{1, -1, 2}
	after1  = keyArgs{2, 2, 1} // after a subcommand's name
)

// respCommands are all commands, the frequent ones first.
var respCommands = [...]respCommand{
	{"get", 2, 2, verbGet, oneKey, "string", []string{"key"}, "The value of a key", (*resp).get},
	{"set", 3, maxArgs, verbSet, oneKey, "string", []string{"key", "value", "[EX seconds|PX milliseconds]"}, "Set the value of a key, for ever or for a while", (*resp).set},
	{"del", 2, maxArgs, verbDel, allKeys, "generic", []string{"key", "[key ...]"}, "Delete keys, and tell how many there were", (*resp).del},
	{"mget", 2, maxArgs, verbGet, allKeys, "string", []string{"key", "[key ...]"}, "The values of several keys", (*resp).mget},
	{"mset", 3, maxArgs, verbSet, inPairs, "string", []string{"key", "value", "[key value ...]"}, "Set the values of several keys", (*resp).mset},
	{"incr", 2, 2, verbOther, oneKey, "string", []string{"key"}, "Add 1 to the number that is the value of a key", (*resp).count},
	{"incrby", 3, 3, verbOther, oneKey, "string", []string{"key", "number"}, "Add to the number that is the value of a key", (*resp).count},
	{"decr", 2, 2, verbOther, oneKey, "string", []string{"key"}, "Take 1 from the number that is the value of a key", (*resp).count},
	{"decrby", 3, 3, verbOther, oneKey, "string", []string{"key", "number"}, "Take from the number that is the value of a key", (*resp).count},
	{"exists", 2, maxArgs, verbOther, allKeys, "generic", []string{"key", "[key ...]"}, "How many of the keys there are", (*resp).exists},
	{"expire", 3, 3, verbOther, oneKey, "generic", []string{"key", "seconds"}, "Let a key be there for so long from now", (*resp).expire},
	{"pexpire", 3, 3, verbOther, oneKey, "generic", []string{"key", "milliseconds"}, "Let a key be there for so long from now", (*resp).expire},
	{"ttl", 2, 2, verbOther, oneKey, "generic", []string{"key"}, "How long a key will be there, in seconds; -1: for ever, -2: it is not", (*resp).ttl},
	{"pttl", 2, 2, verbOther, oneKey, "generic", []string{"key"}, "How long a key will be there, in milliseconds; -1: for ever, -2: it is not", (*resp).ttl},
	{"type", 2, 2, verbOther, oneKey, "generic", []string{"key"}, "string, or none if there is no such key", (*resp).kind},
	{"strlen", 2, 2, verbOther, oneKey, "string", []string{"key"}, "The length of a key's value, in bytes", (*resp).strlen},
	{"scan", 2, maxArgs, verbOther, noKey, "generic", []string{"cursor", "[MATCH pattern]", "[COUNT number]", "[TYPE type]"}, "Go through the keys: from cursor 0 until it is 0 again", (*resp).scan},
	{"memory", 2, maxArgs, verbOther, after1, "server", []string{"USAGE", "key"}, "What a key and its value take of the node's memory bound, in bytes", (*resp).memory},
	{"ping", 1, 2, verbOther, noKey, "connection", []string{"[text]"}, "Answer, with the text if there is one", (*resp).ping},
	{"echo", 2, 2, verbOther, noKey, "connection", []string{"text"}, "Answer with the text", (*resp).echo},
	{"quit", 1, maxArgs, verbOther, noKey, "connection", nil, "Answer, and end the connection", (*resp).quit},
	{"info", 1, maxArgs, verbOther, noKey, "server", []string{"[section ...]"}, "What the node counts; INFO all has peers and queue, too", (*resp).info},
	{"dbsize", 1, 1, verbOther, noKey, "server", nil, "How many keys the database has", (*resp).dbsize},
	{"flushall", 1, 2, verbOther, noKey, "server", []string{"[SYNC|ASYNC]"}, "Forget all keys of all databases", (*resp).flushall},
	{"select", 2, 2, verbOther, noKey, "connection", []string{"number"}, "Go on with another database, 0 to 15", (*resp).selectDB},
	{"auth", 2, 3, verbOther, noKey, "connection", []string{"[default]", "password"}, "Give the password", (*resp).auth},
	{"hello", 1, maxArgs, verbOther, noKey, "connection", []string{"[version]", "[AUTH default password]", "[SETNAME name]"}, "Choose the protocol, 2 or 3", (*resp).hello},
	{"config", 2, maxArgs, verbOther, noKey, "server", []string{"GET", "pattern", "[pattern ...]"}, "Settings by their names", (*resp).config},
	{"client", 2, maxArgs, verbOther, noKey, "connection", []string{"ID|GETNAME|SETNAME", "name|SETINFO", "attribute", "value"}, "Of the connection itself", (*resp).client},
	{"command", 1, maxArgs, verbOther, noKey, "server", []string{"[COUNT|DOCS [name ...]|INFO [name ...]]"}, "The commands that there are", nil},
}

// findRESP returns nil if there is no such command.
func findRESP(name []byte) *respCommand {
	for i := range respCommands {
		if sameWord(name, respCommands[i].name) {
			return &respCommands[i]
		}
	}
	return nil
}

// command lists the commands.
func (c *resp) command() {
	switch all := respCommands[:]; {
	case len(c.args) == 1:
		c.array(len(all))
		for i := range all {
			c.describe(&all[i])
		}
	case sameWord(c.args[1], "count") && len(c.args) == 2:
		c.integer(len(all))
	case sameWord(c.args[1], "docs"):
		c.docs(c.args[2:])
	case sameWord(c.args[1], "info"):
		c.array(len(c.args) - 2)
		for _, name := range c.args[2:] {
			if cmd := findRESP(name); cmd != nil {
				c.describe(cmd)
			} else {
				c.nullArray()
			}
		}
	default:
		c.unknown("COMMAND")
	}
}

// describe reports a command's name, how many arguments it takes (negative: at least), and where its keys are. Redis 7's further fields (flags,
// categories, tips, keys once more, subcommands) are empty: clients rely on their positions.
func (c *resp) describe(cmd *respCommand) {
	arity := cmd.min
	if cmd.max != cmd.min {
		arity = -cmd.min
	}
	c.array(10)
	c.text(cmd.name)
	c.integer(arity)
	c.array(0)
	c.integer(cmd.keys.first)
	c.integer(cmd.keys.last)
	c.integer(cmd.keys.step)
	for range 4 {
		c.array(0)
	}
}

// docs documents the named commands, or all, as redis-cli shows it to its users.
func (c *resp) docs(names [][]byte) {
	var told []*respCommand
	for _, name := range names {
		if cmd := findRESP(name); cmd != nil {
			told = append(told, cmd)
		}
	}
	if len(names) == 0 {
		for i := range respCommands {
			told = append(told, &respCommands[i])
		}
	}
	c.dictionary(len(told))
	for _, cmd := range told {
		c.text(cmd.name)
		c.dictionary(3)
		c.texts("summary", cmd.summary, "group", cmd.group, "arguments")
		c.array(len(cmd.args))
		for _, arg := range cmd.args {
			c.argument(arg)
		}
	}
}

// argument describes one argument. A flag must be a simple string: redis-cli ends on anything else.
func (c *resp) argument(arg string) {
	name, optional := strings.CutPrefix(arg, "[")
	if !optional {
		c.dictionary(2)
		c.texts("name", arg, "type", "string")
		return
	}
	c.dictionary(3)
	c.texts("name", strings.TrimSuffix(name, "]"), "type", "string", "flags")
	c.array(1)
	c.out = append(c.out, "+optional\r\n"...)
}
