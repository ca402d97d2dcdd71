package command_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/loadgen/loadgen/internal/result/run"
	"github.com/loadgen/loadgen/internal/servertest"
)

// planFences are the whole plans in a page, by name.
func planFences(t *testing.T, page string) map[string]string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("..", "..", "docs", page))
	require.NoError(t, err)
	found := map[string]string{}
	for _, block := range regexp.MustCompile("(?ms)^```hcl\n(plan \"([^\"]+)\".*?)^```").FindAllStringSubmatch(string(b), -1) {
		found[block[2]] = block[1]
	}
	return found
}

// TestPlansFromOtherTools runs plans for users of other tools against Redis, in a short form.
func TestPlansFromOtherTools(t *testing.T) {
	t.Parallel()
	addr := servertest.Redis(t)
	for name, short := range map[string]string{"redis-benchmark": "requests=5000", "jmeter": "loops=50 ramp=50ms", "k6": "stage=1500ms"} {
		t.Run(name, func(t *testing.T) {
			args := []string{"-var", "endpoints=" + addr}
			for _, v := range strings.Fields(short) {
				args = append(args, "-var", v)
			}
			b, err := os.ReadFile(filepath.Join("..", "..", "plans", name+".hcl"))
			require.NoError(t, err)
			src := regexp.MustCompile(`duration\("(1s|500ms)"\)`).ReplaceAllString(string(b), `duration("10m")`) // how quick Redis is, is not the question
			r := begin(t, src, args...).result(60 * time.Second)
			require.Equal(t, run.Complete, r.Verdict.Completeness, r.Verdict.Reasons)
			require.NotEqual(t, run.Fail, r.Verdict.Assertions)
			for _, phase := range r.Phase {
				for verb, o := range phase.Op {
					require.Positive(t, o.Due, verb)
					require.Equal(t, o.Due, o.OK+o.Miss+o.Shed, verb)
				}
			}
		})
	}
}

// TestMemtierDefault runs memtier_benchmark's defaults against Redis and memcached, with fewer requests, and compares the result with the server's own
// counts: one SET per ten GETs, on keys with memtier's names, most of which do not exist.
func TestMemtierDefault(t *testing.T) {
	t.Parallel()
	const clients, requests = 5, 550
	for driver, addr := range map[string]string{"redis": servertest.Redis(t), "memcached": servertest.Memcached(t)} {
		t.Run(driver, func(t *testing.T) {
			r := beginExample(t, "memtier-default.hcl", "-var", "endpoints="+addr, "-var", "driver="+driver,
				"-var", "clients=5", "-var", "requests=550").result(60 * time.Second)
			require.Equal(t, run.Complete, r.Verdict.Completeness, r.Verdict.Reasons)
			get, put := r.Phase["mixed"].Op["get"], r.Phase["mixed"].Op["put"]
			const all = 4 * clients * requests
			require.EqualValues(t, all, get.Due+put.Due)
			require.InDelta(t, all/11, float64(put.OK), 5*30) // 5 standard deviations of a binomial count
			require.Less(t, *get.HitRatio, 0.01)
			var served calls
			if driver == "redis" {
				served = countCalls(t, addr)
				require.Contains(t, ask(t, addr, "RANDOMKEY"), "memtier-")
			} else {
				served = memcachedCalls(t, addr)
			}
			require.Equal(t, calls{"get": get.Due, "put": put.Due}, calls{"get": served["get"], "put": served["put"]})
		})
	}
}
