package op_test

import (
	"crypto/md5"
	"fmt"
	"testing"

	"github.com/loadgen/loadgen/internal/plan/op"
	"github.com/loadgen/loadgen/pkg/driver"
)

func BenchmarkPlace(b *testing.B) {
	for _, nodes := range []int{4, 100} {
		slots := op.NewSlots(nodes)
		for i := range op.NumSlots {
			slots.Set(i, i%nodes)
		}
		for name, place := range map[string]op.Placement{"slots": slots, "ketama": op.NewRing(names(nodes)), "rendezvous": op.NewRendezvous(names(nodes))} {
			for _, n := range []int{1, 3} {
				b.Run(fmt.Sprintf("placement=%s/nodes=%d/n=%d", name, nodes, n), func(b *testing.B) {
					keys := keys(1 << 12)
					dst := make([]int, 0, n)
					b.ReportAllocs()
					for i := 0; b.Loop(); i++ {
						dst = place.Place(dst[:0], keys[i%len(keys)], n)
					}
				})
			}
		}
	}
	b.Run("hash=md5", func(b *testing.B) { // of the key alone, for comparison
		keys := keys(1 << 12)
		b.ReportAllocs()
		for i := 0; b.Loop(); i++ {
			md5.Sum(keys[i%len(keys)])
		}
	})
}

func BenchmarkPlain(b *testing.B) {
	for _, nodes := range []int{1, 4} {
		b.Run(fmt.Sprintf("nodes=%d", nodes), func(b *testing.B) {
			benchmark(b, op.NewPlain(op.NewRing(names(nodes)), false), driver.Get)
		})
	}
}

func BenchmarkNWR(b *testing.B) {
	ring := op.NewRing(names(4))
	for _, verb := range []driver.Verb{driver.Put, driver.Get} {
		for _, from := range []string{"n", "first", "random"} {
			cfg := op.NWR{N: 3, W: 2, R: 1, GetsAskR: true, AtRandom: from == "random", Seed: 1}
			if from == "n" {
				cfg = op.NWR{N: 3, W: 2, R: 1}
			}
			if verb == driver.Put && from != "n" {
				continue
			}
			b.Run(fmt.Sprintf("verb=%v/from=%s", verb, from), func(b *testing.B) {
				benchmark(b, op.NewNWR(cfg, ring), verb)
			})
		}
	}
}

// benchmark carries out ops whose every request is answered.
func benchmark(b *testing.B, program op.Program, verb driver.Verb) {
	keys := keys(1 << 12)
	value := driver.Value{Size: 200, Checked: true, Version: 1}
	reply := driver.Reply{Value: value.AppendTo(nil)}
	o := op.Op{Verb: verb, Value: value}
	requests := make([]driver.Request, 0, 16)
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		o.N, o.Key = uint64(i), keys[i%len(keys)]
		requests = program.Start(requests[:0], &o)
		for j := range requests {
			requests, _ = program.On(requests, op.Event{Kind: op.Replied, Op: &o, Endpoint: requests[j].Endpoint, Reply: &reply})
		}
	}
}

func names(n int) []string {
	names := make([]string, n)
	for i := range names {
		names[i] = fmt.Sprintf("n%d", i)
	}
	return names
}

func keys(n int) [][]byte {
	keys := make([][]byte, n)
	for i := range keys {
		keys[i] = fmt.Appendf(nil, "key:%012d", i)
	}
	return keys
}
