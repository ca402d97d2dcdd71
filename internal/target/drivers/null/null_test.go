package null

import (
	"encoding/json"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/hashicorp/hcl/v2/gohcl"
	"github.com/hashicorp/hcl/v2/hclparse"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/loadgen/loadgen/pkg/driver"
)

// valid returns the config after Validate has accepted it.
func valid(t require.TestingT, c Config) *Config {
	require.NoError(t, c.Validate())
	return &c
}

func TestConfigIsReadFromPlans(t *testing.T) {
	const text = `
latency     = "100us"
spread      = "exponential"
miss_every  = 10
error_every = 100
`
	file, diags := hclparse.NewParser().ParseHCL([]byte(text), "plan.hcl")
	require.False(t, diags.HasErrors(), diags)
	config := Driver{}.NewConfig()
	diags = gohcl.DecodeBody(file.Body, nil, config)
	require.False(t, diags.HasErrors(), diags)
	want := Config{Latency: "100us", Spread: "exponential", MissEvery: 10, ErrorEvery: 100}
	require.Equal(t, &want, config)

	bytes, err := json.Marshal(config)
	require.NoError(t, err)
	require.JSONEq(t, `{"latency":"100us","spread":"exponential","miss_every":10,"error_every":100}`, string(bytes))
	back := Driver{}.NewConfig()
	require.NoError(t, json.Unmarshal(bytes, back))
	require.Equal(t, valid(t, want), valid(t, *back.(*Config)))
}

func TestValidate(t *testing.T) {
	tests := []struct {
		config Config
		says   string
	}{
		{Config{Latency: "0s", Spread: "none"}, ""},
		{Config{Latency: "1h", Spread: "exponential", MissEvery: 1, ErrorEvery: 1}, ""},
		{Config{Latency: "", Spread: "none"}, `latency "" is not a duration`},
		{Config{Latency: "100", Spread: "none"}, `latency "100" is not a duration`},
		{Config{Latency: "-1us", Spread: "none"}, "latency"},
		{Config{Latency: "61m", Spread: "none"}, "latency"},
		{Config{Latency: "1us", Spread: "normal"}, `spread "normal" is none of`},
		{Config{Latency: "1us", Spread: ""}, `spread "" is none of`},
		{Config{Latency: "1us", Spread: "none", Growth: "square", GrowthAt: 10}, ""},
		{Config{Latency: "1us", Spread: "none", Growth: "cubic"}, `growth "cubic" is none of`},
		{Config{Latency: "1us", Spread: "none", Growth: "log", GrowthAt: -1}, "growth_at is -1"},
		{Config{Latency: "1us", Spread: "none", MissEvery: -1}, "miss_every is -1"},
		{Config{Latency: "1us", Spread: "none", ErrorEvery: -2}, "error_every is -2"},
	}
	for _, tt := range tests {
		err := tt.config.Validate()
		if tt.says == "" {
			require.NoError(t, err, "%+v", tt.config)
			continue
		}
		require.ErrorContains(t, err, tt.says, "%+v", tt.config)
	}
	require.NoError(t, Driver{}.NewConfig().(*Config).Validate(), "the defaults")
}

// known is how many verbs the driver knows: get, put, delete.
const known = driver.Delete + 1

func TestDefaultsAnswerAtOnce(t *testing.T) {
	var reply driver.Reply
	for verb := range known {
		latency := Driver{}.Reply(Driver{}.NewConfig(), &driver.Request{Verb: verb}, &reply)
		require.Zero(t, latency)
		require.Equal(t, driver.OK, reply.Outcome)
		h, ok := reply.Header()
		require.Equal(t, verb == driver.Get, ok)
		require.Equal(t, ok, h.Version > 0)
	}
}

// drawRequest draws requests as programs send them.
func drawRequest(t *rapid.T) driver.Request {
	return driver.Request{
		Endpoint: rapid.IntRange(0, 100).Draw(t, "endpoint"),
		Verb:     driver.Verb(rapid.IntRange(0, int(known)-1).Draw(t, "verb")),
		Stream:   rapid.Uint32().Draw(t, "stream"),
		N:        rapid.Uint64().Draw(t, "n"),
	}
}

func TestReplyIsAFunctionOfItsRequest(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		config := valid(t, Config{
			Latency:    rapid.SampledFrom([]string{"0s", "1ns", "100us", "1h"}).Draw(t, "latency"),
			Spread:     rapid.SampledFrom([]string{"none", "exponential", "uniform"}).Draw(t, "spread"),
			MissEvery:  rapid.IntRange(0, 5).Draw(t, "miss_every"),
			ErrorEvery: rapid.IntRange(0, 5).Draw(t, "error_every"),
		})
		req := drawRequest(t)
		var first driver.Reply
		again := driver.Reply{Outcome: driver.Conflict, Value: []byte("of an earlier reply"), Message: []byte("too")}
		latency := Driver{}.Reply(config, &req, &first)
		other := req
		other.N++
		Driver{}.Reply(config, &other, &driver.Reply{})
		require.Equal(t, latency, Driver{}.Reply(config, &req, &again))
		require.Equal(t, first, again, "every field is overwritten")
		require.GreaterOrEqual(t, latency, time.Duration(0))
		require.Less(t, latency, 38*time.Hour)
		require.Contains(t, append(Driver{}.Outcomes(req.Verb), driver.Error), first.Outcome)
		require.Equal(t, first.Outcome == driver.Error, first.Message != nil)
	})
}

func TestOutcomesAreCountedOut(t *testing.T) {
	config := valid(t, Config{Latency: "0s", Spread: "none", MissEvery: 4, ErrorEvery: 10})
	for endpoint := range 3 {
		for stream := range uint32(5) {
			var counts [driver.NumVerbs][driver.NumOutcomes]int
			for n := range uint64(1000) {
				for verb := range known {
					var reply driver.Reply
					Driver{}.Reply(config, &driver.Request{Endpoint: endpoint, Verb: verb, Stream: stream, N: n}, &reply)
					counts[verb][reply.Outcome]++
				}
			}
			// Of any twenty turns, two are errors and five would be misses, one of which is an error already.
			reading := [driver.NumOutcomes]int{driver.OK: 700, driver.Miss: 200, driver.Error: 100}
			require.Equal(t, reading, counts[driver.Get])
			require.Equal(t, reading, counts[driver.Delete])
			require.Equal(t, [driver.NumOutcomes]int{driver.OK: 900, driver.Error: 100}, counts[driver.Put])
		}
	}
}

func TestReplicasTakeTurns(t *testing.T) {
	config := valid(t, Config{Latency: "0s", Spread: "none", ErrorEvery: 3})
	for n := range uint64(9) {
		errors := 0
		for endpoint := range 3 {
			var reply driver.Reply
			Driver{}.Reply(config, &driver.Request{Endpoint: endpoint, N: n}, &reply)
			if reply.Outcome == driver.Error {
				errors++
			}
		}
		require.Equal(t, 1, errors, "op %d", n)
	}
}

// latencies returns sorted latencies of many requests, in units of the mean.
func latencies(t *testing.T, spread string) []float64 {
	config := valid(t, Config{Latency: "100us", Spread: spread})
	var got []float64
	var reply driver.Reply
	for stream := range uint32(50) {
		for n := range uint64(1000) {
			for endpoint := range 3 {
				d := Driver{}.Reply(config, &driver.Request{Endpoint: endpoint, Stream: stream, N: n}, &reply)
				got = append(got, float64(d)/1e5)
			}
		}
	}
	slices.Sort(got)
	return got
}

func TestSpreads(t *testing.T) {
	tests := []struct {
		spread       string
		distribution func(x float64) float64
	}{
		{"exponential", func(x float64) float64 { return 1 - math.Exp(-x) }},
		{"uniform", func(x float64) float64 { return x / 2 }},
	}
	for _, tt := range tests {
		got := latencies(t, tt.spread)
		n := float64(len(got))
		distance := 0.0
		for i, x := range got {
			f := tt.distribution(x)
			distance = max(distance, f-float64(i)/n, float64(i+1)/n-f)
		}
		require.Less(t, distance*math.Sqrt(n), 2.23, "%s: Kolmogorov and Smirnov's K at a significance of 10⁻⁴", tt.spread)
	}
	require.Equal(t, []float64{1}, slices.Compact(latencies(t, "none")))
}

// Replicas, streams and ops have their own latencies.
func TestLatenciesDiffer(t *testing.T) {
	config := valid(t, Config{Latency: "1s", Spread: "exponential"})
	first := map[time.Duration]driver.Request{}
	for endpoint := range 10 {
		for stream := range uint32(10) {
			for n := range uint64(100) {
				req := driver.Request{Endpoint: endpoint, Stream: stream, N: n}
				latency := Driver{}.Reply(config, &req, &driver.Reply{})
				other, again := first[latency]
				require.False(t, again, "%+v and %+v", other, req)
				first[latency] = req
			}
		}
	}
}

func TestLatencyChangedAfterValidate(t *testing.T) {
	config := valid(t, Config{Latency: "100us", Spread: "none"})
	config.Latency = "7us"
	require.Equal(t, 7*time.Microsecond, Driver{}.Reply(config, &driver.Request{}, &driver.Reply{}))
}

func TestUnknownVerbHasNoOutcomes(t *testing.T) {
	require.Nil(t, Driver{}.Outcomes(driver.Verb(driver.NumVerbs)))
	require.Equal(t, "null", Driver{}.Name())
}

func TestReplyAllocatesNothing(t *testing.T) {
	for _, spread := range []string{"none", "exponential", "uniform"} {
		var config any = valid(t, Config{Latency: "100us", Spread: spread, MissEvery: 3, ErrorEvery: 4})
		var req driver.Request
		var reply driver.Reply
		require.Zero(t, testing.AllocsPerRun(1000, func() {
			req.N++
			Driver{}.Reply(config, &req, &reply)
		}), spread)
	}
}

func BenchmarkReply(b *testing.B) {
	for _, spread := range []string{"none", "exponential"} {
		b.Run("spread="+spread, func(b *testing.B) {
			var config any = valid(b, Config{Latency: "100us", Spread: spread})
			var req driver.Request
			var reply driver.Reply
			b.ReportAllocs()
			for b.Loop() {
				req.N++
				Driver{}.Reply(config, &req, &reply)
			}
		})
	}
}

// TestGrowth has the request with the number growth_at take twice as long as the first, whatever the shape.
func TestGrowth(t *testing.T) {
	at := func(c Config, n uint64) time.Duration {
		return Driver{}.Reply(valid(t, c), &driver.Request{Verb: driver.Put, N: n}, new(driver.Reply))
	}
	for shape, want := range map[string][3]time.Duration{
		"":       {time.Millisecond, time.Millisecond, time.Millisecond},
		"none":   {time.Millisecond, time.Millisecond, time.Millisecond},
		"linear": {time.Millisecond, 2 * time.Millisecond, 4 * time.Millisecond},
		"square": {time.Millisecond, 2 * time.Millisecond, 10 * time.Millisecond},
		"log":    {time.Millisecond, 2 * time.Millisecond, 3 * time.Millisecond},
	} {
		c := Config{Latency: "1ms", Spread: "none", Growth: shape, GrowthAt: 10}
		require.Equal(t, want, [3]time.Duration{at(c, 0), at(c, 10), at(c, 30)}, shape)
	}
	require.Equal(t, 2*time.Millisecond, at(Config{Latency: "1ms", Spread: "none", Growth: "log"}, 1000), "growth_at is 1,000 by itself")
	require.Equal(t, longest, at(Config{Latency: "1h", Spread: "none", Growth: "square", GrowthAt: 1}, 1e15), "bounded")
}
