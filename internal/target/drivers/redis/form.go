package redis

import (
	"crypto/sha1"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/loadgen/loadgen/pkg/driver"
	"github.com/loadgen/loadgen/pkg/driver/form"
)

var _ form.Former = Driver{}

// Form is an op as a plan words it for a redis target.
type Form struct {
	Request Request `hcl:"request,block" json:"request"`
	Expect  *Expect `hcl:"expect,block" json:"expect"`
	// Capture says what is kept of a reply, by name: "reply", or "reply[0]" for an element of an array.
	Capture map[string]string `hcl:"capture,optional" json:"capture,omitempty"`
}

// Request is a command.
type Request struct {
	// Command is the command's name and its arguments. Only the arguments may have placeholders.
	Command []string `hcl:"command,optional" json:"command"`
	// Form is "requests" if the key is the request, from a trace of whole requests, and "transactions" if it is a MULTI, commands and an EXEC. Command
	// is empty then.
	Form string `hcl:"form,optional" json:"form,omitempty"`
	// Selects says that a SELECT stands before each request of such a trace.
	Selects bool `hcl:"selects,optional" json:"selects,omitempty"`
	// Script is the text of a Lua script. Each connection loads it, and its SHA-1 is inserted after EVALSHA or EVALSHA_RO.
	Script string `hcl:"script,optional" json:"script"`
}

// Expect says which replies mean which outcome. A reply in no list is ok, or an error if there is a list of ok replies. Miss, Conflict and QuorumFailed may also
// hold the first words of error replies; QuorumFailed holds nothing else.
type Expect struct {
	OK           []string `hcl:"ok,optional" json:"ok"`
	Miss         []string `hcl:"miss,optional" json:"miss"`
	Conflict     []string `hcl:"conflict,optional" json:"conflict,omitempty"`
	QuorumFailed []string `hcl:"quorum_failed,optional" json:"quorum_failed,omitempty"`
	Error        []string `hcl:"error,optional" json:"error"`
}

// maxArguments bounds a command's words.
const maxArguments = 256

// NewForm implements form.Former.
func (Driver) NewForm() any { return &Form{} }

// CheckForm implements form.Former.
func (Driver) CheckForm(config any, f driver.Form) (form.Wording, error) {
	a, err := compile(f)
	if err != nil {
		return form.Wording{}, err
	}
	if cfg, ok := config.(*Config); ok && cfg.Cluster {
		if a.whole {
			return form.Wording{}, errors.New("form is for whole requests, which have no slot: replay the trace of each node on a server that is not of a cluster")
		}
		if err := a.routed(); err != nil {
			return form.Wording{}, err
		}
	}
	w := form.Wording{Outcomes: []driver.Outcome{driver.OK, driver.Miss}}
	if e := f.Words.(*Form).Expect; e != nil {
		if len(e.Conflict) > 0 {
			w.Outcomes = append(w.Outcomes, driver.Conflict)
		}
		if len(e.QuorumFailed) > 0 {
			w.Outcomes = append(w.Outcomes, driver.QuorumFailed)
		}
	}
	if a.whole {
		w.Keyed, w.Requests, w.Command = true, true, "REQUESTS"
		return w, nil
	}
	for _, t := range a.args {
		w.Take(t)
	}
	w.Captures = slices.Sorted(maps.Keys(f.Words.(*Form).Capture))
	w.Command = strings.ToUpper(a.args[0].String())
	w.Reads = slices.Contains(readers, w.Command)
	return w, nil
}

// ShowForm implements form.Former.
func (Driver) ShowForm(_ any, f driver.Form, sample *driver.Request, run string) string {
	a, err := compile(f)
	if err != nil {
		return err.Error()
	}
	if a.whole {
		return "the requests of the phase's trace"
	}
	var words []string
	for _, t := range a.args {
		words = append(words, shown(t.Append(nil, sample, run)))
	}
	text := strings.Join(words, " ")
	if a.script != "" {
		text += ", with the script " + shown([]byte(a.script)) + " loaded by each connection"
	}
	return text
}

// shown returns an argument for people to read: cut, and quoted if it has anything but printable ASCII.
func shown(b []byte) string {
	const most = 60
	cut, size := "", len(b)
	if size > most {
		b, cut = b[:most], fmt.Sprintf("… (%d bytes)", size)
	}
	if size == 0 || slices.ContainsFunc(b, func(c byte) bool { return c <= ' ' || c >= 0x7f || c == '"' || c == '\\' }) {
		return strconv.Quote(string(b)) + cut
	}
	return string(b) + cut
}

// compile reads a form.
func compile(f driver.Form) (*ask, error) {
	words, ok := f.Words.(*Form)
	if !ok {
		return nil, fmt.Errorf("redis: form is a %T, want a *redis.Form", f.Words)
	}
	command := words.Request.Command
	switch form := words.Request.Form; {
	case form != "" && len(command) > 0:
		return nil, errors.New("command beside form: leave one of them out")
	case form == requests || form == transactions:
		return wholeRequests(f.Verb, words)
	case form != "":
		return nil, fmt.Errorf("form is %.40q: write %q or %q, for the requests of a trace, or leave it out and write command", form, requests, transactions)
	case words.Request.Selects:
		return nil, errors.New("selects without form: it is for the requests of a trace")
	case len(command) == 0 || command[0] == "":
		return nil, errors.New(`command is empty: write its name and arguments, such as ["HGETALL", "{key}"]`)
	case len(command) > maxArguments:
		return nil, fmt.Errorf("command of %d words: write at most %d", len(command), maxArguments)
	}
	name := strings.ToUpper(command[0])
	if strings.ContainsFunc(name, func(r rune) bool { return r <= ' ' || r >= 0x7f || r == '{' || r == '}' }) {
		return nil, fmt.Errorf("command[0] is %.40q: write a command's name, and each argument as a text of its own: [\"HGET\", \"{key}\", \"f\"]", command[0])
	}
	a := &ask{verb: f.Verb, op: f.Name, script: words.Request.Script}
	captures, err := form.ParseCaptures(words.Capture, parsePart)
	a.captures = captures
	errs := []error{unfit(name, command[1:]), err}
	for i, text := range command {
		t, err := form.Parse(text)
		if err != nil {
			errs = append(errs, fmt.Errorf("command[%d] is %q: %w", i, text, err))
		}
		a.args = append(a.args, t)
	}
	errs = append(errs, a.runs(name), a.expects(words.Expect))
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	return a, nil
}

// runs inserts the script's name into the command that runs it.
func (a *ask) runs(name string) error {
	if a.script == "" {
		return nil
	}
	if name != "EVALSHA" && name != "EVALSHA_RO" {
		return fmt.Errorf(`script is with %s: write command = ["EVALSHA", "1", "{key}"], the number of keys and then they; the script's SHA-1 is put before`, name)
	}
	a.args = slices.Insert(a.args, 1, form.Template{{Kind: form.Text, Text: digest(a.script)}})
	return nil
}

// digest returns the server's name for a script.
func digest(script string) string {
	sum := sha1.Sum([]byte(script))
	return hex.EncodeToString(sum[:])
}

// unfit says why a command does not work as one request with one reply, pipelined on a connection, and what to write instead.
func unfit(name string, args []string) error {
	if write, ok := refused[name]; ok {
		return fmt.Errorf("command is %s, %s", name, write)
	}
	waits := func(arg string) bool { return strings.EqualFold(arg, "BLOCK") }
	if (name == "XREAD" || name == "XREADGROUP") && slices.ContainsFunc(args, waits) {
		return fmt.Errorf("command is %s with BLOCK, %s", name, blocks)
	}
	return nil
}

const (
	blocks     = "which keeps all later requests on the connection waiting: write the command that answers at once"
	subscribes = "after which a connection has messages instead of replies: it does not fit a load"
	transacts  = "whose requests belong together, and sessions share connections: write a script instead, which is one request and as atomic"
	connects   = "which changes the connection for all ops on it: write what it is for in the target"
	manages    = "which is for managing a server, not for a load: leave it out"
)

// refused are the commands that break the rule of one request and one reply, or that change the meaning of other requests.
var refused = map[string]string{
	"BLPOP": blocks, "BRPOP": blocks, "BLMOVE": blocks, "BRPOPLPUSH": blocks, "BLMPOP": blocks, "BZPOPMIN": blocks, "BZPOPMAX": blocks, "BZMPOP": blocks,
	"WAIT": blocks, "WAITAOF": blocks,
	"SUBSCRIBE": subscribes, "PSUBSCRIBE": subscribes, "SSUBSCRIBE": subscribes, "UNSUBSCRIBE": subscribes, "PUNSUBSCRIBE": subscribes,
	"SUNSUBSCRIBE": subscribes, "MONITOR": subscribes, "SYNC": subscribes, "PSYNC": subscribes,
	"MULTI": transacts, "EXEC": transacts, "DISCARD": transacts, "WATCH": transacts, "UNWATCH": transacts,
	"AUTH": connects, "HELLO": connects, "SELECT": connects, "CLIENT": connects, "RESET": connects, "QUIT": connects, "ASKING": connects,
	"READONLY": connects, "READWRITE": connects,
	"SHUTDOWN": manages, "FAILOVER": manages, "REPLICAOF": manages, "SLAVEOF": manages, "DEBUG": manages,
}

// readers are the commands that only read.
var readers = strings.Fields(`BITCOUNT BITPOS EXISTS GEODIST GEOHASH GEOPOS GET GETBIT HEXISTS HGET HLEN HMGET HSTRLEN LINDEX LLEN LPOS MGET PFCOUNT PTTL SCARD
	SISMEMBER SMISMEMBER STRLEN TTL TYPE XLEN ZCARD ZCOUNT ZLEXCOUNT ZMSCORE ZRANK ZREVRANK ZSCORE GEOSEARCH GETRANGE HGETALL HKEYS
	HRANDFIELD HVALS LRANGE SDIFF SINTER SMEMBERS SRANDMEMBER SUNION SUBSTR XRANGE XREVRANGE ZRANDMEMBER ZRANGE ZRANGEBYLEX ZRANGEBYSCORE
	ZREVRANGE ZREVRANGEBYLEX ZREVRANGEBYSCORE`)

// keyAt returns the index of a command's first key. In most commands it follows the name (https://redis.io/docs/latest/develop/reference/key-specs/).
func (a *ask) keyAt() int {
	switch name := strings.ToUpper(a.args[0].String()); name {
	case "EVAL", "EVALSHA", "EVAL_RO", "EVALSHA_RO", "FCALL", "FCALL_RO":
		return 3
	case "ZUNION", "ZINTER", "ZDIFF", "ZINTERCARD", "SINTERCARD", "LMPOP", "ZMPOP", "OBJECT", "BITOP", "XGROUP", "XINFO", "MEMORY":
		return 2
	case "XREAD", "XREADGROUP":
		for i, t := range a.args {
			if strings.EqualFold(t.String(), "STREAMS") {
				return i + 1
			}
		}
	}
	return 1
}

// routed says what is wrong with a form on a cluster, where a request goes to the node of its op's key.
func (a *ask) routed() error {
	at := a.keyAt()
	if at >= len(a.args) {
		return errors.New("command has no key, on a cluster: write one that has, with {key} for it")
	}
	t := a.args[at]
	i := slices.IndexFunc(t, func(p form.Part) bool { return p.Kind == form.Key })
	if len(t) == 1 && i == 0 {
		return nil
	}
	if i > 0 && i+1 < len(t) && t[i-1].Kind == form.Text && t[i+1].Kind == form.Text &&
		strings.IndexByte(t[i-1].Text, '{') == len(t[i-1].Text)-1 && strings.HasPrefix(t[i+1].Text, "}") && i == 1 {
		return nil
	}
	return fmt.Errorf(`command[%d] is %q, the command's key, on a cluster: write "{key}" alone, or with its hash tag around it: "name:{{{key}}}" becomes name:{KEY}`, at, t.String())
}
