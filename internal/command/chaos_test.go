package command_test

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/loadgen/loadgen/internal/faultproxy"
	"github.com/loadgen/loadgen/internal/result/run"
	"github.com/loadgen/loadgen/internal/servertest"
)

// chaosPlan is a load of puts; which one is filled in.
const chaosPlan = `
plan "chaos" {}
variable "endpoints" { type = list(string) }` + redisT + hundredD + `
phase "puts" {
	target  = target.t
	dataset = dataset.d
	ops     = { put = 1 }
	%s
}
`

// stroke is something that happens to a process or a cable, some time after the load began.
type stroke struct {
	at   time.Duration
	what string
	do   func(c *cabled)
}

// TestProcessesInChaos lets random faults happen to three worker processes and a coordinator process: killed, stopped, cut off, slow. Whatever
// happens, the run ends; what the target received is in the figures or within the declared bounds; a complete run is exact, and has every worker's
// final report; nothing is sent after it. Four seeds have leases of 1 s; if "chaos" is demanded, twenty, and one has a lease of 10 s. A seed fixes what
// happens, and when on this process's clock; how the machine reacts differs every time.
func TestProcessesInChaos(t *testing.T) {
	first, last := uint64(1), uint64(4)
	if servertest.Demanded("chaos") {
		first, last = 0, 20
	}
	for seed := first; seed <= last; seed++ {
		lease := time.Second
		if seed == 0 {
			lease = 10 * time.Second
		}
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			t.Logf("once more: LOADGEN_TEST_REQUIRE=chaos go test ./internal/command -run '^TestProcessesInChaos$/^%d$'", seed)
			haunt(t, rand.New(rand.NewPCG(seed, 0)), lease)
		})
	}
}

// haunt runs a plan while faults happen.
func haunt(t *testing.T, dice *rand.Rand, lease time.Duration) {
	loads := []string{
		fmt.Sprintf("closed {\n sessions = 6\n duration = %q\n think = \"2ms\"\n}", 3*lease),
		fmt.Sprintf("closed {\n sessions = 6\n iterations = %d\n think = \"2ms\"\n}", 1000*int(lease/time.Second)),
		fmt.Sprintf("open {\n sessions = 6\n rate = \"2000/s\"\n arrivals = \"constant\"\n duration = %q\n}", 3*lease),
	}
	load := loads[dice.IntN(len(loads))]
	strokes := script(dice, lease)
	t.Log(load)
	for _, s := range strokes {
		t.Log(s.at.Round(time.Millisecond), s.what)
	}

	c := lay(t, fmt.Sprintf(chaosPlan, load), "--lease", lease.String())
	c.told("3 of 3 workers")
	began := time.Now()
	for _, s := range strokes {
		time.Sleep(time.Until(began.Add(s.at)))
		s.do(c)
	}
	r := c.result(4*lease + time.Minute)
	time.Sleep(100 * time.Millisecond) // what was in sockets has come
	c.requireAccounted(r)
	switch r.Verdict.Completeness {
	case run.Complete:
	case run.Degraded:
		require.NotEmpty(t, r.Losses)
	default:
		require.True(t, len(r.Losses) == 3 || len(r.PhaseOrder) == 0, "%v", r.Verdict.Reasons)
	}
	comesToRest(t, c.received)
}

// script is what happens, in the order of time.
func script(dice *rand.Rand, lease time.Duration) []stroke {
	var all []stroke
	moment := func(leases float64) time.Duration { return time.Duration(dice.Float64() * leases * float64(lease)) }
	add := func(at time.Duration, what string, do func(c *cabled)) { all = append(all, stroke{at, what, do}) }
	for i := range 3 {
		name := fmt.Sprintf("w%d ", i+1)
		for range dice.IntN(3) {
			at, lasts := moment(3), moment(1.5)
			cable := func(f faultproxy.Fault) {
				add(at, fmt.Sprintf("%s%+v", name, f), func(c *cabled) { c.cables[i].Set(f) })
				add(at+lasts, name+"mended", func(c *cabled) { // a stream that has lost bytes is of no more use
					c.cables[i].Set(faultproxy.Fault{})
					c.cables[i].Reset()
				})
			}
			switch dice.IntN(8) {
			case 0:
				add(at, name+"killed", func(c *cabled) { send(c.workers[i], syscall.SIGKILL) })
			case 1:
				add(at, name+"stopped", func(c *cabled) { send(c.workers[i], syscall.SIGSTOP) })
				add(at+lasts, name+"continued", func(c *cabled) { send(c.workers[i], syscall.SIGCONT) })
			case 2:
				add(at, name+"reset", func(c *cabled) { c.cables[i].Reset() })
			case 3:
				add(at, name+"finished", func(c *cabled) { c.cables[i].Finish() })
			case 4:
				cable(faultproxy.Fault{DropUp: true})
			case 5:
				cable(faultproxy.Fault{DropDown: true})
			case 6:
				cable(faultproxy.Fault{DropUp: true, DropDown: true})
			case 7:
				cable(faultproxy.Fault{Rate: 64_000 / 8, Delay: lease / 40})
			}
		}
	}
	if dice.IntN(4) == 0 {
		at, lasts := moment(3), moment(1.5)
		add(at, "coordinator stopped", func(c *cabled) { send(c.process, syscall.SIGSTOP) })
		add(at+lasts, "coordinator continued", func(c *cabled) { send(c.process, syscall.SIGCONT) })
	}
	slices.SortStableFunc(all, func(a, b stroke) int { return cmp.Compare(a.at, b.at) })
	return all
}

// send sends a signal to a process, unless that has ended.
func send(p *process, s syscall.Signal) {
	select {
	case <-p.done:
	default:
		_ = p.cmd.Process.Signal(s) // it may have ended just now
	}
}
