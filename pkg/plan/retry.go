package plan

import (
	"fmt"
	"slices"
	"time"

	"github.com/loadgen/loadgen/internal/plan/dialect"
	"github.com/loadgen/loadgen/pkg/driver"
)

// Retry says how ops of a target that fail are tried again.
type Retry struct {
	Attempts int           `json:"attempts"`   // tries in all
	Backoff  time.Duration `json:"backoff_ns"` // before the second; each further wait is twice as long, up to LongestBackoff
	Jitter   float64       `json:"jitter"`     // share of a wait of which a random part is left out
	On       []string      `json:"on"`         // outcomes of a try that another one follows: retried
}

const maxAttempts = 10

// LongestBackoff bounds the wait before a try.
const LongestBackoff = time.Minute

// retried are the outcomes that a further try may change.
var retried = []string{driver.Timeout.String(), driver.Error.String()}

// Repeats reports whether the op may be carried out twice: the plan says so, or it only reads.
func (o *Op) Repeats() bool { return o.Repeat != nil && *o.Repeat || o.Reads }

// retry reads how ops are tried again.
func (b *block) retry() *Retry {
	r := &Retry{On: slices.Clone(retried)}
	b.Expect([]string{"attempts", "backoff", "jitter", "on"}, nil)
	b.Require("attempts", "Write attempts = 3, or another number of tries, the first one included.")
	dialect.Integer(b.Block, "attempts", &r.Attempts)
	b.Duration("backoff", &r.Backoff)
	b.Share("jitter", &r.Jitter)
	b.Texts("on", &r.On)
	return r
}

// retry checks how ops are tried again.
func (v *validator) retry(t *Target, at part) {
	r := t.Retry
	if r.Attempts < 2 || r.Attempts > maxAttempts {
		v.fault(fmt.Sprintf("%s: attempts = %d", at.where, r.Attempts), fmt.Sprintf("Write a number from 2 to %d: it counts all tries of an op, the first one included. Leave retry out for one try.", maxAttempts),
			at.path+".attempts")
	}
	if r.Backoff < 0 || r.Backoff > LongestBackoff {
		v.fault(fmt.Sprintf("%s: backoff = %q", at.where, r.Backoff.String()), "Write a duration from 0s to 1m: the wait before the second try. Each further one is twice as long.", at.path+".backoff")
	}
	switch {
	case !(r.Jitter >= 0 && r.Jitter <= 1):
		v.fault(fmt.Sprintf("%s: jitter = %g", at.where, r.Jitter), `Write a share from 0 to 1, or "50%": of a wait, of which a random part is left out.`, at.path+".jitter")
	case r.Jitter > 0 && r.Backoff == 0:
		v.fault(at.where+": jitter without backoff", `Write backoff = "10ms", or another wait before the second try, or leave jitter out.`, at.path+".jitter", at.path)
	}
	if len(r.On) == 0 {
		v.fault(at.where+": on = []", `Write on = ["timeout", "error"], or one of them, or leave retry out.`, at.path+".on", at.path)
	}
	for i, outcome := range r.On {
		if slices.Contains(r.On[:i], outcome) {
			v.fault(fmt.Sprintf("%s: on has %s twice", at.where, dialect.Quote(outcome)), "Write it once.", at.path+".on")
			break
		}
		v.oneOf(at, "on", outcome, retried...)
	}
	v.retries(t, at)
}

// retries checks that a target's ops can be tried again.
func (v *validator) retries(t *Target, at part) {
	switch {
	case t.Replication != nil:
		v.fault(at.where+": of a replicated target", "Leave retry out, or replication: a put goes to all replicas anyway, and with read_fanout = \"r\" a get asks another one for each that fails.", at.path)
	case t.Source != "":
		v.fault(at.where+": of a target that reads through a cache", "Leave retry out: on_cache_error says what follows when the cache fails.", at.path)
	case t.Executor == Thread:
		v.fault(at.where+": of files", "Leave retry out: it is for targets over a network.", at.path)
	}
	for _, o := range t.Ops {
		if o.Repeat == nil && !o.Repeats() {
			v.fault(fmt.Sprintf("target %s, op %s: may it be tried again? Done twice, it may change more than done once", dialect.Quote(t.Name), dialect.Quote(o.Name)),
				"Write repeat = true if twice does no harm, or repeat = false for one try.", parent(at.path)+".op."+o.Name, at.path)
		}
	}
}
