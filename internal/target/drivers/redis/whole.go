package redis

import (
	"bytes"
	"errors"

	"github.com/loadgen/loadgen/pkg/driver"
)

// Forms of requests whose bytes are the op's key, as loadgen trace import writes them.
const (
	requests     = "requests"     // a command
	transactions = "transactions" // MULTI, commands and EXEC, sent at once
)

// wholeRequests returns the ask of a form whose requests come from a trace.
func wholeRequests(verb driver.Verb, words *Form) (*ask, error) {
	if words.Request.Script != "" {
		return nil, errors.New("script beside form: the trace's requests say which scripts they run")
	}
	a := &ask{verb: verb, whole: true, block: words.Request.Form == transactions, selects: words.Request.Selects}
	if err := a.expects(words.Expect); err != nil {
		return nil, err
	}
	a.rules.usual = a.rules.usual && !a.block && !a.selects // no reply can be skimmed
	return a, nil
}

// parseAll reads the replies to a SELECT, if there is one, and to a command or a transaction. The outcome is that of the last reply, or an error if an
// earlier one is, or one within it.
func (a *ask) parseAll(c *codec, b []byte, reply *driver.Reply) (int, error) {
	at, failed, direct := 0, []byte(nil), false
	begins, single := 0, ask{verb: a.verb, whole: true, rules: a.rules} // the reply to MULTI, and how to read that to the command behind a SELECT
	if a.selects {
		begins = 1
	}
	for i := 0; ; i++ {
		r, n, err := c.read(b[at:])
		if n == 0 || err != nil {
			return 0, err
		}
		first := i == 0 && a.selects
		direct = direct || a.block && r.kind == errorReply && i == begins
		last := !first && (!a.block || ends(&r, direct))
		if last && !a.block {
			n, err = single.parse(c, b[at:], reply)
		} else if r.elements() > 0 {
			var within []byte
			if n, within, err = through(b[at:], n, r.elements(), c.read); failed == nil {
				failed = within
			}
		}
		if n == 0 || err != nil {
			return 0, err
		}
		if at += n; r.kind == errorReply && failed == nil {
			failed = r.text
		}
		if !last {
			continue
		}
		if a.block {
			*reply = driver.Reply{}
			if r.missing() {
				reply.Outcome = driver.Miss // EXEC did nothing
			}
		}
		if failed != nil {
			*reply = driver.Reply{Outcome: driver.Error, Message: c.told(failed)}
		}
		return at, nil
	}
}

// ends reports whether a reply within a transaction is that to EXEC. direct says that MULTI failed, so that the commands were carried out at once.
func ends(r *reply, direct bool) bool {
	if r.kind == errorReply {
		return bytes.HasPrefix(r.text, []byte("EXECABORT")) || bytes.HasPrefix(r.text, []byte("ERR EXEC without MULTI"))
	}
	return !direct && r.kind != status // OK for MULTI, QUEUED for the commands
}
