package workload

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/loadgen/loadgen/internal/plan/keyfile"
	"github.com/loadgen/loadgen/internal/plan/op"
	"github.com/loadgen/loadgen/pkg/plan"
)

// listedKeys returns the keys of a file of n lines of different lengths.
func listedKeys(t testing.TB, n int) *keyfile.Set {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "%d%s\n", i, strings.Repeat("x", i%70))
	}
	set, _, err := keyfile.Read(strings.NewReader(b.String()), keyfile.Source{Form: keyfile.Lines}, 0, 0)
	require.NoError(t, err)
	return set
}

// Ops are the same as with generated keys, with the file's keys in place of the numbers: the choice of key does not depend on its source.
func TestKeysOfAFile(t *testing.T) {
	set := listedKeys(t, 1000)
	for name, k := range map[string]plan.Keys{
		"uniform": keys("uniform", "shared", 1000), "zipf": keys("zipf", "shared", 1000), "hotspot": hot(0.8, 0.2, 1000),
		"ycsb": ycsbKeys(1000), "sequence": keys("sequence", "shared", 1000),
	} {
		for _, kind := range []Kind{Load, Populate, Clear} {
			for _, batch := range []int{1, 3} {
				ph := closed("load", 10, 0)
				ph.Batch = batch
				switch {
				case batch > 1 && (kind != Load || name == "sequence"):
					continue
				case kind == Populate:
					ph = &plan.Phase{Name: "fill", Ops: ops(0, 1), Populate: &plan.Clients{Sessions: 10, Pipeline: 1}}
				case kind == Clear:
					ph = &plan.Phase{Name: "empty", Ops: ops(0, 0, 1), Clear: &plan.Clients{Sessions: 10, Pipeline: 1}}
				}
				p := onePlan(k, ph)
				made, err := New(p, ph, Step{Kind: kind})
				require.NoError(t, err)
				p.Datasets[0].Keys.File = &plan.EntryFile{Path: "keys.txt", Form: "lines"}
				listed, err := New(p, ph, Step{Kind: kind, Files: map[string]Files{ph.Dataset: {Keys: set}}})
				require.NoError(t, err)
				require.False(t, listed.Alike())
				all := 0
				for i := range 10 {
					a, b := made.Stream(i), listed.Stream(i)
					var x, y op.Op
					for range 300 {
						more := a.Next(&x)
						require.Equal(t, more, b.Next(&y))
						if !more {
							break
						}
						all++
						require.Equal(t, string(set.Append(nil, x.Index)), string(y.Key))
						for i, item := range y.Batch {
							require.Equal(t, x.Batch[i].Index, item.Index)
							require.Equal(t, string(set.Append(nil, item.Index)), string(item.Key))
						}
						x.Value.Key, y.Value.Key = 0, 0 // they follow from the keys
						x.Key, y.Key, x.Batch, y.Batch = x.Key[:0], x.Key[:0], x.Batch[:0], x.Batch[:0]
						require.Equal(t, x, y)
					}
				}
				if kind != Load || name == "sequence" {
					require.Equal(t, 1000, all, "each key once")
				}
			}
		}
	}
}

func TestKeysOfAFileAllocateNothing(t *testing.T) {
	k := keys("zipf", "shared", 1000)
	k.File = &plan.EntryFile{Path: "keys.txt", Form: "lines"}
	ph := closed("load", 10, 0)
	p := onePlan(k, ph)
	s, err := New(p, ph, Step{Kind: "load", Files: map[string]Files{ph.Dataset: {Keys: listedKeys(t, 1000)}}})
	require.NoError(t, err)
	st := s.Stream(3)
	o := op.Op{Key: make([]byte, 0, 80)}
	require.Zero(t, testing.AllocsPerRun(1000, func() { st.Next(&o) }))
}

// Missing keys, or another number of them than in the plan, are an error.
func TestKeysThatAreMissing(t *testing.T) {
	k := keys("uniform", "shared", 1000)
	k.File = &plan.EntryFile{Path: "keys.txt", Form: "lines"}
	ph := closed("load", 10, 0)
	p := onePlan(k, ph)
	for _, set := range []*keyfile.Set{nil, listedKeys(t, 999)} {
		_, err := New(p, ph, Step{Kind: "load", Files: map[string]Files{ph.Dataset: {Keys: set}}})
		require.ErrorContains(t, err, "the 1000 keys of keys.txt are not at hand")
	}
}
