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

// rowsPlan has what the tables for users of JMeter and k6 say, each fragment where it may stand.
const rowsPlan = `plan "rows" {}
target "shop" {
	driver        = "web"
	endpoints     = ["127.0.0.1:8443"]
	authorization = secret("NAME")
	tls {
		insecure = true
		cert     = "PATH"
		key      = "PATH"
	}
	op "create" {
		request {
			method  = "POST"
			path    = "/orders"
			headers = { "Accept" = "text/html" }
			body    = "{value}"
		}
		expect { ok = [200, 201] }
	}
}
target "cache" {
	driver    = "redis"
	endpoints = ["127.0.0.1:6379"]
}
dataset "items" {
	keys {
		count = 10
		scope = "session"
	}
	values { size = 10 }
}
dataset "files" {
	keys {
		file = "keys.csv"
		form = "csv"
	}
	values {
		file = "values.csv"
		form = "csv"
		pick = "key"
	}
}
phase "orders" {
	target   = target.shop
	dataset  = dataset.items
	max_bad  = "1%"
	on_error = "continue"
	scenario "order" {
		step "create" {
			slo { response_p99 = "20ms" }
		}
		step "create" {
			think = "uniform(1s, 3s)"
			slo { response_p95 = "500ms" }
		}
		step "create" { think = "lognormal(2s, 0.5, 20s)" }
	}
	stages {
		think = "exponential(2s, 20s)"
		stage {
			sessions = 100
			duration = "1m"
			ramp     = "1m"
		}
	}
}
phase "own" {
	target  = target.cache
	dataset = dataset.items
	ops     = { get = 9, put = 1 }
	setup { ops = { put = 1 } }
	slo {
		op           = "get"
		response_p95 = "500ms"
	}
	closed {
		duration = "30s"
		think    = "1s"
	}
}
phase "rates" {
	target  = target.cache
	dataset = dataset.files
	ops     = { get = 1 }
	stages {
		on_full = "shed"
		stage {
			rate     = "100/s"
			duration = "60s"
			ramp     = "10s"
		}
	}
}
phase "open" {
	target  = target.cache
	dataset = dataset.files
	ops     = { put = 1 }
	open {
		rate     = "600/min"
		duration = "30s"
	}
}
`

// TestRowsForOtherTools checks a plan that has every fragment of the tables for users of JMeter and k6.
func TestRowsForOtherTools(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile(filepath.Join("..", "..", "docs", "coming-from.md"))
	require.NoError(t, err)
	_, tables, _ := strings.Cut(string(page), "\n## JMeter\n")
	tables, _, _ = strings.Cut(tables, "\n## vegeta\n")
	plain := func(text string) string {
		return strings.NewReplacer(" ", "", "\t", "", "\n", "", ",", "").Replace(strings.TrimRight(text, " }"))
	}
	fragments := 0
	for _, row := range regexp.MustCompile(`(?m)^\| [^|]* \| (.*)$`).FindAllStringSubmatch(tables, -1) {
		if strings.Contains(row[1], "http.md#") {
			continue // that page's plan has its words
		}
		for _, span := range regexp.MustCompile("`([^`…]* = [^`…]*)`").FindAllStringSubmatch(row[1], -1) {
			require.Contains(t, plain(rowsPlan), plain(span[1]))
			fragments++
		}
	}
	require.Greater(t, fragments, 30)
	dir := t.TempDir()
	for name, text := range map[string]string{"rows.hcl": rowsPlan, "keys.csv": "key\na\nb\n", "values.csv": "value\n1\n2\n"} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	p := start(t, command(t, "plan", "check", filepath.Join(dir, "rows.hcl")))
	require.Zero(t, p.wait(time.Minute), "%s", &p.stderr)
}
