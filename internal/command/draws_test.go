package command_test

import (
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/loadgen/loadgen/internal/result/run"
	"github.com/loadgen/loadgen/internal/result/rundir"
)

// chancePlan has random arrivals, ops, keys, sizes and reads, on a dataset that is made first.
const chancePlan = `
plan "chance" { seed = 7 }
variable "wait" { default = "0s" }
target "t" {
	driver    = "null"
	endpoints = ["a", "b", "c"]
	latency   = var.wait
	replication {
		n           = 3
		w           = 2
		r           = 1
		read_fanout = "r"
		read_from   = "random"
	}
}
dataset "d" {
	keys { count = 100 }
	values { size = "uniform(24B, 100B)" }
}` + fillD + `
phase "load" {
	target  = target.t
	dataset = dataset.d
	ops = {
		get = 1
		put = 1
	}
	open {
		rate     = "2k/s"
		duration = "200ms"
		arrivals = "poisson"
		sessions = 6
		pipeline = 64
	}
}
experiment {
	repeat = 3
	matrix { wait = ["0s", "1ms"] }
}
`

// TestRepetitionsDrawAnew: a repetition's load is the same for all variants, and another than that of other repetitions; the dataset is the same for
// all. A run by hand draws as the first, or as told, with any number of workers.
func TestRepetitionsDrawAnew(t *testing.T) {
	t.Parallel()
	l := begin(t, chancePlan)
	x := l.experiment(60 * time.Second)
	loads, due, fills := map[int]string{}, map[uint64]bool{}, map[string]bool{}
	for _, one := range x.Runs {
		r, err := rundir.Load(l.runs, one.ID)
		require.NoError(t, err)
		require.Equal(t, one.Repetition, r.DrawsAs)
		load := r.Phase["load"]
		did := fmt.Sprint(load.Digest, load.Requests)
		if before, there := loads[one.Repetition]; there {
			require.Equal(t, before, did, "the variants of repetition %d", one.Repetition)
		}
		loads[one.Repetition], due[load.Op["get"].Due+load.Op["put"].Due], fills[r.Phase["fill"].Digest] = did, true, true
	}
	require.Len(t, loads, 3)
	require.Greater(t, len(due), 1, "arrivals that every repetition has alike")
	require.NotEqual(t, loads[1], loads[2])
	require.NotEqual(t, loads[2], loads[3])
	require.Len(t, fills, 1, "the dataset")

	byHand := func(want int, r *run.Run) {
		require.Equal(t, want, r.DrawsAs)
		require.Equal(t, loads[want], fmt.Sprint(r.Phase["load"].Digest, r.Phase["load"].Requests))
	}
	byHand(1, begin(t, chancePlan, "--once").whole())
	for nth := 2; nth <= 3; nth++ {
		flags := []string{"--variant", "wait=0s", "--repetition", strconv.Itoa(nth)}
		byHand(nth, begin(t, chancePlan, flags...).whole())
		byHand(nth, beginTeam(t, 3, func(args ...string) *load { return begin(t, chancePlan, args...) }, flags...).whole())
	}
}
