package engine

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/loadgen/loadgen/internal/load/worker"
	"github.com/loadgen/loadgen/internal/plan/op"
)

// TestKeysAreWhereThePlacementSays puts every key once and checks which server has it.
func TestKeysAreWhereThePlacementSays(t *testing.T) {
	names := []string{"n0", "n1", "n2"}
	for placement, place := range map[string]op.Placement{"ketama": op.NewRing(names), "rendezvous": op.NewRendezvous(names)} {
		t.Run(placement, func(t *testing.T) {
			b := newBench(t, redisPlan(t, 3, fmt.Sprintf("placement = %q", placement), "populate {}"), "load", time.Millisecond)
			b.run(worker.Populate)
			found := 0
			for i := range names {
				for key := range b.server(i).keys {
					require.Equal(t, place.Home([]byte(key)), i, key)
					found++
				}
			}
			require.Equal(t, 100, found)
		})
	}
}

// An index stands for several keys if each session has keys of its own, or if steps have different datasets. What is remembered of one is not said of
// another.
func TestKeysOfTheSameIndexAreApart(t *testing.T) {
	names := []string{"n0", "n1", "n2", "n3"}
	for name, text := range map[string]string{
		"of sessions": `
			dataset "d" {
				keys {
					count = 10
					scope = "session"
				}
				values { size = 100 }
			}
			phase "load" {
				target      = target.t
				dataset     = dataset.d
				ops         = { get = 1 }
				expect_hits = 0
				closed {
					sessions   = 4
					iterations = 100
				}
			}`,
		"of datasets": `
			dataset "d" {
				keys { count = 10 }
				values { size = 100 }
			}
			dataset "e" {
				keys {
					count  = 10
					format = "other:%012d"
				}
				values { size = 100 }
			}
			phase "load" {
				target      = target.t
				dataset     = dataset.d
				expect_hits = 0
				scenario "both" {
					step "get" {}
					step "get" {
						as      = "other"
						dataset = dataset.e
					}
				}
				closed {
					sessions   = 4
					iterations = 100
				}
			}`,
	} {
		for replication, copies := range map[string]int{"": 1, "replication {\n coordinate = \"client\"\n n = 2\n w = 1\n r = 2\n}": 2} {
			endpoints := ""
			for i := range names {
				endpoints += fmt.Sprintf("\"127.0.0.1:%d\", ", firstPort+i)
			}
			p := parsePlan(t, fmt.Sprintf("target \"t\" {\n driver = \"redis\"\n endpoints = [%s]\n%s\n}\n%s", endpoints, replication, text))
			b := newBench(t, p, "load", time.Millisecond)
			place := op.NewRing(names)
			heard := map[string]int{}
			for i := range names {
				b.server(i).heard = func(_, key []byte) {
					heard[string(key)]++
					homes := []int{place.Home(key)}
					if copies > 1 {
						homes = place.Place(nil, key, copies)
					}
					require.Contains(t, homes, i, "%s: %s", name, key)
				}
			}
			b.run(worker.Load)
			require.Greater(t, len(heard), 10)
		}
	}
}
