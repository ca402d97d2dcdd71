package command

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"strings"
	"time"

	"github.com/loadgen/loadgen/internal/count/measure"
	"github.com/loadgen/loadgen/internal/count/selfcheck"
	"github.com/loadgen/loadgen/internal/fleet/coord"
	"github.com/loadgen/loadgen/internal/load/engine"
	"github.com/loadgen/loadgen/internal/load/worker"
	"github.com/loadgen/loadgen/internal/result/run"
	"github.com/loadgen/loadgen/internal/target/cachenode"
	"github.com/loadgen/loadgen/internal/target/drivers"
	"github.com/loadgen/loadgen/internal/target/drivers/null"
	"github.com/loadgen/loadgen/pkg/driver"
	"github.com/loadgen/loadgen/pkg/hist"
	"github.com/loadgen/loadgen/pkg/plan"
)

// oracles are the nodes that the self-check's plan runs against, by the variable that holds their address, with each request's service time and the
// further delay of its reply. All take some service time, so that every floor is for the same path through a node.
var oracles = []struct{ variable, service, delay string }{
	{"plain", "1ns", "0s"},
	{"half", half.String(), "0s"},
	{"constant", "100us", "0s"},
	{"exponential", "exp(50us)", "0s"},
	{"held", "1ns", held.String()},
	{"queue", "exp(1ms)", "0s"},
}

// half is the service time of the node that gives the floor for "constant" and "exponential"; held is the delay of replies at the one that gives the
// floor for the queue. Disturbances of an op, such as a kernel tick or the wake-up of a processor that has slept that long, depend on the op's
// length. So the floor of instant ops would not do.
const (
	half = 50 * time.Microsecond
	held = time.Millisecond
)

// The node of phase "stall" stops for stallLength once the phase is stallAfter old. Answers slower than slowAfter count as slow. That is long compared
// with the time to work off the queue that has built up.
const (
	stallAfter  = 900 * time.Millisecond
	stallLength = time.Second
	slowAfter   = 100 * time.Millisecond
)

// knownAnswers runs the self-check's plan.
type knownAnswers struct {
	drain   <-chan struct{}
	apart   func(func() error) error // runs what starts the nodes
	plan    *plan.Plan
	nodes   map[string]*cachenode.Fleet // by variable
	visits  map[string][]selfcheck.Visit
	totals  totals
	result  *run.Run
	ordered bool // the stall
	order   error
}

// totals is a coord.Store that adds up one worker's snapshots by step. The plan has one step per phase, in order.
type totals []*measure.Totals

func (t *totals) Append(worker string, b []byte) error {
	if worker == "" {
		return nil // an entry of the coordinator's own
	}
	var s measure.Snapshot
	if _, err := s.Decode(b); err != nil {
		return err
	}
	for len(*t) <= s.Step {
		*t = append(*t, measure.NewTotals(s.Delta.Origin, s.Delta.Endpoints()))
	}
	(*t)[s.Step].Merge(&s.Delta)
	return nil
}

// Observe does nothing: the plan observes nothing.
func (t *totals) Observe([]byte) error { return nil }

func (t *totals) Sync() error { return nil }

var errStopped = errors.New("stopped by the user")

// run starts the nodes and runs the plan.
func (k *knownAnswers) run(ctx context.Context) error {
	if err := k.start(ctx); err != nil {
		return err
	}
	canonical, err := k.plan.Canonical()
	if err != nil {
		return err
	}
	log := slog.New(slog.DiscardHandler)
	local := engine.New(engine.Config{Drivers: drivers.All(), Secrets: environmentSecrets, Loops: 1, Logger: log})
	defer local.Close()
	k.result = coord.Run(ctx, coord.Config{
		Header: run.Header{ID: k.plan.Name, Plan: k.plan.Name, PlanDigest: plan.Digest(canonical), Loadgen: version()},
		Plan:   k.plan, Canonical: canonical,
		Workers: []worker.Member{{Name: "local", Version: version(), Worker: local}},
		Store:   &k.totals, Progress: func(u run.Update) { k.stall(ctx, u) }, Logger: log, Drain: k.drain,
	})
	switch k.result.Verdict.Completeness {
	case run.Complete:
	case run.Aborted:
		return errStopped
	default:
		return fmt.Errorf("the plan of the self-check failed: %s", strings.Join(k.result.Verdict.Reasons, "; "))
	}
	for _, o := range oracles {
		text, err := askQueue(k.nodes[o.variable].Endpoints()[0])
		if err == nil {
			k.visits[o.variable], err = selfcheck.ParseVisits(text)
		}
		if err != nil {
			return fmt.Errorf("ask a node for its queue: %w", err)
		}
	}
	return k.order
}

// start starts the nodes and puts their addresses into the plan.
func (k *knownAnswers) start(ctx context.Context) error {
	exe, err := os.Executable()
	if err != nil {
		return err
	}
	k.nodes, k.visits = map[string]*cachenode.Fleet{}, map[string][]selfcheck.Visit{}
	var vars plan.Vars
	for _, o := range oracles {
		var node *cachenode.Fleet
		err := k.apart(func() (err error) {
			node, err = cachenode.Start(ctx, exe, []string{"target", "serve", "--parent-pipe", "--attentive", "--listen", "127.0.0.1:0", "--service", o.service, "--delay", o.delay}, 1)
			return err
		})
		if err != nil {
			return err
		}
		k.nodes[o.variable] = node
		vars.Flags = append(vars.Flags, o.variable+"="+node.Endpoints()[0])
	}
	file, diags := plan.Parse(selfcheck.Plan, "selfcheck.hcl", drivers.All())
	if diags.HasErrors() {
		return diags
	}
	if k.plan, diags = file.Resolve(vars); diags.HasErrors() {
		return diags
	}
	return nil
}

// close ends the nodes, and says which had to be killed: the machine had no time for them, but their answers stand.
func (k *knownAnswers) close(words io.Writer) {
	for _, node := range k.nodes {
		if err := node.Close(); err != nil {
			fmt.Fprintf(words, "loadgen: %v\n", err)
		}
	}
}

// stall makes the node stop in the middle of its phase.
func (k *knownAnswers) stall(ctx context.Context, u run.Update) {
	if u.Phase == "stall" && u.Elapsed >= stallAfter && !k.ordered {
		k.ordered = true
		k.order = k.nodes["plain"].Command(ctx, 0, "stall "+stallLength.String())
	}
}

// askQueue returns a built-in node's answer to INFO queue.
func askQueue(endpoint string) ([]byte, error) {
	const within = 10 * time.Second
	conn, err := net.DialTimeout("tcp", endpoint, within)
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(within)); err != nil {
		return nil, err
	}
	if _, err := io.WriteString(conn, "*2\r\n$4\r\nINFO\r\n$5\r\nqueue\r\n"); err != nil {
		return nil, err
	}
	in := bufio.NewReader(conn)
	var size int
	if _, err := fmt.Fscanf(in, "$%d\r\n", &size); err != nil {
		return nil, err
	}
	text := make([]byte, size)
	_, err = io.ReadFull(in, text)
	return text, err
}

// floors returns the cost of ops for which the node has nothing to do.
func (k *knownAnswers) floors() selfcheck.Floors {
	generator, floor := k.gets("generator"), k.response("floor")
	return selfcheck.Floors{
		GeneratorNS: k.result.Phase["generator"].Generator.CPUSeconds / float64(generator.Due) * 1e9,
		P50:         float64(floor.Quantile(0.5)) / 1e9, P99: float64(floor.Quantile(0.99)) / 1e9,
	}
}

// checks compares the measurements with the known answers.
func (k *knownAnswers) checks() []selfcheck.Check {
	const oneInHundred, twoInHundred = 0.01, 0.02
	floor := selfcheck.Less(k.response("half"), half)
	timer := make([]int64, k.gets("timer").Due)
	for i := range timer {
		timer[i] = int64(100 * time.Microsecond)
	}
	checks := []selfcheck.Check{
		selfcheck.Compare("no target, replies after 100 µs", k.response("timer"), selfcheck.Above(timer, nil), oneInHundred),
		selfcheck.Compare("no target, replies after exponential times with a mean of 100 µs", k.response("draws"), selfcheck.Above(k.drawn("draws"), nil), oneInHundred),
		k.node("constant", "a node that works for 100 µs, and the floor", floor, oneInHundred),
		k.node("exponential", "a node that works for exponential times with a mean of 50 µs, and the floor", floor, oneInHundred),
		k.node("queue", "a queue with one server, exponential times with a mean of 1 ms, 70 % load, and the floor of such arrivals", selfcheck.Less(k.response("arrivals"), held), twoInHundred),
		k.stood(),
	}
	for i, loads := range [...][]string{{"timer"}, {"draws"}, {"half", "constant"}, {"half", "exponential"}, {"arrivals", "queue"}, {"stall"}} {
		for _, name := range loads {
			if wait := k.result.Phase[name].Generator.RunQueueWait; wait != nil {
				checks[i].Queued = max(checks[i].Queued, *wait)
			}
		}
	}
	return checks
}

// gets returns the counts of a phase's gets.
func (k *knownAnswers) gets(phase string) *measure.Op {
	for i, ph := range k.plan.Phases {
		if ph.Name == phase {
			return k.totals[i].Ops[driver.Get]
		}
	}
	panic("the self-check's plan has no phase " + phase)
}

func (k *knownAnswers) response(phase string) *hist.Hist {
	h := k.gets(phase).ResponseAll()
	return &h.Answered
}

// drawn returns the times that the null driver drew for a phase's ops.
func (k *knownAnswers) drawn(phase string) []int64 {
	ph := k.plan.Phase(phase)
	config := k.plan.Target(ph.Target).Config
	var list []int64
	var reply driver.Reply
	for stream := range ph.Closed.Sessions {
		for n := range ph.Closed.Iterations {
			req := driver.Request{Verb: driver.Get, Stream: uint32(stream), N: uint64(n)}
			list = append(list, int64(null.Driver{}.Reply(config, &req, &reply)))
		}
	}
	return list
}

// node compares the measurements at a node with the requests it had to serve.
func (k *knownAnswers) node(name, words string, floor *hist.Hist, share float64) selfcheck.Check {
	return selfcheck.Compare(words, k.response(name), selfcheck.Above(selfcheck.Sojourns(k.visits[name]), floor), share)
}

// stood checks the second in which the node stopped. Every op due in it had to wait until it ended; the last of them did not wait long. Service time
// shows only the one op per connection that was in flight. Working off the queue takes some hundredths of a second, in which a few more ops are late.
func (k *knownAnswers) stood() selfcheck.Check {
	load := k.plan.Phase("stall").Open
	due := load.Rate * (stallLength - slowAfter).Seconds()
	stall := k.gets("stall")
	response, service := stall.ResponseAll(), stall.ServiceAll()
	const late = 0.05
	return selfcheck.NewCheck("a node that stands still for 1 s under 1,000 ops a second on 4 connections: how many were slower than 100 ms",
		selfcheck.Figure{Name: "by response", Measured: slower(&response.Answered), Expected: due, Within: late * due},
		selfcheck.Figure{Name: "by service", Measured: slower(&service.Answered), Expected: float64(load.Sessions * load.Pipeline)},
	)
}

// slower counts the ops that took longer than slowAfter.
func slower(h *hist.Hist) (n float64) {
	for upper, count := range h.Buckets() {
		if upper > int64(slowAfter) {
			n += float64(count)
		}
	}
	return n
}
