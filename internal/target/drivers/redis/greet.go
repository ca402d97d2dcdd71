package redis

import (
	"bytes"
	"cmp"
	"fmt"
	"strconv"
	"strings"
)

// greeting is what a new connection sends, and the answers it expects.
type greeting struct {
	request  []byte
	steps    []step
	password string // kept to hide it in errors
}

// step is one command of a greeting.
type step struct {
	name string // the command as an error may show it, without the password
	want string // the status that answers it, which some servers send as a bulk string; "" for HELLO, which a map answers

	courtesy bool // the load does not need it: a server may refuse it
}

func newGreeting(cfg *Config, password string, scripts ...string) greeting {
	g := greeting{password: password}
	add := func(s step, args ...string) {
		g.request = AppendCommand(g.request, args...)
		g.steps = append(g.steps, s)
	}
	if cfg.Protocol == 3 {
		add(step{name: "HELLO 3"}, hello(cfg, password)...)
	} else {
		g.introduce(cfg, add)
	}
	if cfg.Database != 0 {
		n := strconv.Itoa(cfg.Database)
		add(step{name: "SELECT " + n, want: "OK"}, "SELECT", n)
	}
	if cfg.Cluster && cfg.Read == fromReplica {
		add(step{name: "READONLY", want: "OK"}, "READONLY") // lets replicas answer gets
	}
	add(step{name: "PING", want: "PONG", courtesy: true}, "PING")
	for _, text := range scripts {
		add(step{name: "SCRIPT LOAD", want: digest(text)}, "SCRIPT", "LOAD", text)
	}
	return g
}

// hello returns the command that chooses RESP3 and identifies the client.
func hello(cfg *Config, password string) []string {
	args := []string{"HELLO", "3"}
	if cfg.Password != nil {
		args = append(args, "AUTH", cmp.Or(cfg.Username, "default"), password)
	}
	if cfg.ClientName != "" {
		args = append(args, "SETNAME", cfg.ClientName)
	}
	return args
}

// introduce adds the commands that do this in RESP2.
func (g *greeting) introduce(cfg *Config, add func(s step, args ...string)) {
	switch {
	case cfg.Password == nil:
	case cfg.Username == "":
		add(step{name: "AUTH", want: "OK"}, "AUTH", g.password)
	default:
		add(step{name: "AUTH " + cfg.Username, want: "OK"}, "AUTH", cfg.Username, g.password)
	}
	if cfg.ClientName != "" {
		add(step{name: "CLIENT SETNAME", want: "OK", courtesy: true}, "CLIENT", "SETNAME", cfg.ClientName)
	}
}

// Greet appends HELLO, or AUTH and CLIENT SETNAME if the config asks for them; SELECT if the config asks for it; and PING.
func (c *codec) Greet(dst []byte) ([]byte, int) {
	return append(dst, c.greeting.request...), len(c.greeting.steps)
}

// ParseGreeting reads the reply to the i-th command of Greet.
func (c *codec) ParseGreeting(b []byte, i int) (int, error) { return c.greeting.parse(b, i, c.read) }

func (g *greeting) parse(b []byte, i int, read reader) (int, error) {
	step := g.steps[i]
	r, n, err := read(b)
	switch {
	case err != nil:
		return 0, fmt.Errorf("%s: %s", step.name, g.words(b, err.Error()))
	case n == 0:
		return 0, nil
	case r.kind == errorReply && step.courtesy && refuses(r.text):
	case r.kind == errorReply:
		return 0, fmt.Errorf("%s: server says %s%s", step.name, g.words(r.text, printable(r.text)), step.remedy(r.text))
	case step.want == "" && r.kind == mapping:
		if n, err = readWhole(b); err != nil {
			return 0, fmt.Errorf("%s: %s", step.name, g.words(b, err.Error()))
		}
	case step.want == "":
		return 0, fmt.Errorf("%s: want a map, got %s", step.name, g.words(b[:n], quote(b[:n])))
	case r.kind != status && r.kind != bulk || string(r.text) != step.want:
		return 0, fmt.Errorf("%s: want +%s, got %s", step.name, step.want, g.words(b[:n], quote(b[:n])))
	}
	return n, nil
}

// refuses reports whether a server does not know a command, or does not permit it to the user.
func refuses(words []byte) bool {
	return bytes.HasPrefix(words, []byte("NOPERM ")) || bytes.Contains(bytes.ToLower(words), []byte("unknown command"))
}

// remedy says what to do if a server needs a password, or does not know HELLO because it is older than RESP3 or is not Redis.
func (s *step) remedy(words []byte) string {
	if bytes.HasPrefix(words, []byte("NOAUTH ")) {
		return ` (write password = secret("NAME") in the target)`
	}
	unknown := bytes.HasPrefix(words, []byte("NOPROTO")) || bytes.Contains(bytes.ToLower(words), []byte("unknown command"))
	if s.want != "" || !unknown {
		return ""
	}
	return ": it does not speak RESP3, which Redis does from version 6 on; write protocol = 2 in the target"
}

// words returns shown, a printable form of raw, but at most its first word if either could contain the password. Servers that do not know AUTH repeat
// its arguments, whole or cut, and an echo server repeats everything.
func (g *greeting) words(raw []byte, shown string) string {
	const shared = 4 // consecutive bytes; any two texts share shorter runs
	size := min(shared, len(g.password))
	for i := 0; size > 0 && i+size <= len(g.password); i++ {
		if part := g.password[i : i+size]; bytes.Contains(raw, []byte(part)) || strings.Contains(shown, part) {
			return errorCode(shown) + "(words withheld: they could hold the password)"
		}
	}
	return shown
}

// errorCode returns the code that begins an error's words, plus a space: WRONGPASS, NOAUTH, ERR; "" if there is none.
func errorCode(text string) string {
	code, _, found := strings.Cut(text, " ")
	if !found || strings.Trim(code, "ABCDEFGHIJKLMNOPQRSTUVWXYZ") != "" {
		return ""
	}
	return code + " "
}

// printable returns an error's words on one line, control characters escaped and the length bounded.
func printable(b []byte) string {
	const most = 300
	if len(b) > most {
		b = b[:most]
	}
	q := strconv.Quote(string(bytes.TrimSpace(b)))
	return strings.ReplaceAll(q[1:len(q)-1], `\"`, `"`)
}

// AppendCommand appends a command as an array of bulk strings.
func AppendCommand(dst []byte, args ...string) []byte {
	dst = append(dst, '*')
	dst = appendLength(dst, len(args))
	for _, arg := range args {
		dst = append(dst, '$')
		dst = appendLength(dst, len(arg))
		dst = append(dst, arg...)
		dst = append(dst, "\r\n"...)
	}
	return dst
}
