package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"

	"github.com/loadgen/loadgen/internal/result/run"
)

// room is the pipeline depth of open loads: a session may have that many ops in flight, so that a brief stall of the target does not delay ops that
// loadgen could have sent.
const room = 64

// schedule is an open load: arrivals at a share of the rate that a closed load has reached on the same connections.
type schedule struct {
	arrivals string
	share    float64
}

// punctuality measures how late loadgen starts ops of open loads, with its event loop on one processor and everything else, including the server, on
// another.
func (b *bench) punctuality(ctx context.Context) error {
	if b.serverOn == nil {
		return errors.New("-open takes taskset and two processors: one for the loop, one for everything else")
	}
	c := &cell{"redis", "get", 32, 1}
	if err := b.serve(ctx, c); err != nil {
		return err
	}
	ops, err := b.enough(ctx, c)
	if err != nil {
		return err
	}
	p, op, err := b.pinned(ctx, c, "-var", "pipeline=1", "-var", "ops="+strconv.FormatInt(ops, 10))
	if err != nil {
		return err
	}
	most := given(op.Rate)
	fmt.Fprintf(b.w, "\nclosed load, %d connections, pipeline 1: %.0f/s, %.2f µs of processor time an op\n", sessions, most, 1e6**p.OpCostSeconds)
	for _, s := range []schedule{{"constant", 0.6}, {"poisson", 0.5}} {
		if err := b.late(ctx, c, s, s.share*most); err != nil {
			return err
		}
	}
	return nil
}

// late runs one schedule once per round, and prints each round and the medians.
func (b *bench) late(ctx context.Context, c *cell, s schedule, rate float64) error {
	fmt.Fprintf(b.w, "\nopen load, %s arrivals at %.0f %% of it: %.0f/s, %d connections, pipeline %d, %v a run\n",
		s.arrivals, 100*s.share, rate, sessions, room, b.o.duration)
	fmt.Fprintf(b.w, "  %-8s%12s%12s%12s%10s%12s%12s%8s%12s%12s  %s\n",
		"", "lag p50", "p99", "M/D/1 p99", "ratio", "p99.9", "an op", "busy", "kept from", "at most", "verdict")
	vars := []string{
		"-var", "pipeline=" + strconv.Itoa(room), "-var", "arrivals=" + s.arrivals,
		"-var", fmt.Sprintf("rate=%.0f/s", rate), "-var", fmt.Sprintf("seconds=%g", b.o.duration.Seconds()),
	}
	var rounds []lateness
	for i := range b.o.pairs {
		p, op, err := b.pinned(ctx, c, vars...)
		if err != nil {
			return err
		}
		p99, expected := given(op.Lag.P99), given(p.ExpectedLagP99)
		l := lateness{given(op.Lag.P50), p99, expected, p99 / expected, given(op.Lag.P999), *p.OpCostSeconds, p.Generator.Busy, math.NaN(), math.NaN()}
		if kept := p.Generator.Interrupted; kept != nil {
			l[7], l[8] = kept.Seconds, kept.MaxSeconds
		}
		rounds = append(rounds, l)
		fmt.Fprintf(b.w, "  %-8d%s  %s\n", i+1, l, p.Validity)
	}
	fmt.Fprintf(b.w, "  %-8s%s\n", "median", middle(rounds))
	fmt.Fprintf(b.w, "  $ %s\n", quoted(b.pinnedArgs(c, vars...)))
	return nil
}

// given returns a figure of a result, NaN if there were too few ops for it.
func given(figure *float64) float64 {
	if figure == nil {
		return math.NaN()
	}
	return *figure
}

// lateness is the result of one run of an open load: lag p50 and p99, the lag p99 of an M/D/1 queue with ops of the same cost, the ratio of the last
// two, lag p99.9, processor time per op, the busy share of the loop, and how long the loop was kept from its processor, in total and at most at a
// stretch. Times are in seconds; NaN if a run was too short.
type lateness [9]float64

func (l lateness) String() string {
	µ := func(s float64) string { return fmt.Sprintf("%9.1f µs", 1e6*s) }
	return µ(l[0]) + µ(l[1]) + µ(l[2]) + fmt.Sprintf("%10.2f", l[3]) + µ(l[4]) + µ(l[5]) + fmt.Sprintf("%8.2f", l[6]) + µ(l[7]) + µ(l[8])
}

// middle returns the median of each figure.
func middle(rounds []lateness) (m lateness) {
	for i := range m {
		var list []float64
		for _, l := range rounds {
			list = append(list, l[i])
		}
		m[i] = median(list)
	}
	return m
}

// pinnedArgs returns loadgen's command line with its loop on the clients' processor and everything else on the server's.
func (b *bench) pinnedArgs(c *cell, vars ...string) []string {
	lg := b.clients[0]
	args := []string{"coordinator", "run", "plans/bench.hcl", "--runs", b.dir, "--out", resultIn(b.dir), "--pin", b.clientOn[2]}
	if b.o.spin >= 0 {
		args = append(args, "--spin", b.o.spin.String())
	}
	args = append(args, "-var", `endpoints=["127.0.0.1:`+b.running.port+`"]`, "-var", "driver="+c.server, "-var", "sessions="+strconv.Itoa(sessions))
	return slices.Concat(b.serverOn, []string{lg.exe}, args, vars)
}

// pinned runs pinnedArgs and returns the result's phase and its op. An invalid result counts, too.
func (b *bench) pinned(ctx context.Context, c *cell, vars ...string) (*run.Phase, *run.Op, error) {
	argv := b.pinnedArgs(c, vars...)
	if err := os.Remove(resultIn(b.dir)); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, nil, err
	}
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.Dir = b.root
	words, failed := cmd.CombinedOutput()
	p, op, err := lastPhase(b.dir)
	if err == nil && p.OpCostSeconds == nil {
		err = errors.New("no processor time")
	}
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w\n%s", strings.Join(argv, " "), errors.Join(failed, err), words)
	}
	return p, op, nil
}
