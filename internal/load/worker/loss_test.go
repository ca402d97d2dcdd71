package worker

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// says compares an error's text; "" means no error.
func says(t *testing.T, want string, err error, name string) {
	t.Helper()
	if want == "" {
		require.NoError(t, err, name)
		return
	}
	require.ErrorContains(t, err, want, name)
}

// A loss's unseen ops must agree with the time in which the worker had load to send.
func TestWhatALossMaySay(t *testing.T) {
	for name, c := range map[string]struct {
		l                 Loss
		text, brief, want string
	}{
		"before a phase":  {Loss{Worker: "w", Why: "why"}, "worker w was lost: why", "LOST before the first phase: it sent no load", ""},
		"nothing missing": {Loss{Worker: "w", Why: "why", Phase: "p", Seq: 3, KnownSeconds: 2, LoadedSeconds: 2}, "worker w was lost in phase p: why; its last snapshot is number 3, up to 2.00 s of the run, and no op after it is missing", "LOST in phase p: known up to 2.00 s, nothing is missing", ""},
		"a bound":         {Loss{Worker: "w", Why: "why", Phase: "p", KnownSeconds: 1, LoadedSeconds: 2, UnseenOps: 5}, "worker w was lost in phase p: why; no snapshot of its part of that step was kept; at most 5 ops that it may have sent after that, until 2.00 s, are not in the figures", "LOST in phase p: known up to 1.00 s, at most 5 ops unseen until 2.00 s", ""},
		"an estimate":     {Loss{Worker: "w", Why: "why", Phase: "p", KnownSeconds: 1, LoadedSeconds: 2, UnseenOps: 5, UnseenEstimated: true, ReplacedBy: "v", ReplacedFrom: "q"}, "worker w was lost in phase p: why; no snapshot of its part of that step was kept; an estimated 5 ops that it may have sent after that, until 2.00 s, are not in the figures; worker v took its sessions over from phase q on", "LOST in phase p: known up to 1.00 s, an estimated 5 ops unseen until 2.00 s; from phase q on, v had its sessions", ""},
		"none, estimated": {Loss{Worker: "w", Phase: "p", KnownSeconds: 1, LoadedSeconds: 2, UnseenEstimated: true}, "", "", ""},
		"of no phase":     {Loss{Worker: "w", KnownSeconds: 1, LoadedSeconds: 2, UnseenOps: 5}, "", "", "worker w may have sent at most 5 ops when it had no load to send"},
		"in no time":      {Loss{Worker: "w", Phase: "p", KnownSeconds: 2, LoadedSeconds: 2, UnseenOps: 1}, "", "", "worker w may have sent at most 1 op when"},
		"ended before":    {Loss{Worker: "w", Phase: "p", KnownSeconds: 2, LoadedSeconds: 1}, "", "", "worker w is known up to 2 s, and had ended by 1 s"},
	} {
		says(t, c.want, c.l.CheckValid(), name)
		if c.text != "" {
			require.EqualError(t, &c.l, c.text, name)
			require.Equal(t, c.brief, c.l.Brief(), name)
		}
	}
}
