// Package null is the driver without a target. Replies come after a computed delay and with a computed outcome. This lets you compare what loadgen
// reports with known true values, and measure loadgen's own cost per op, the floor under every other driver's figures.
//
// A reply is a function of the request's stream, its number and the endpoint, and of nothing else: not of the verb, time, or earlier requests.
package null

import (
	"cmp"
	"fmt"
	"math"
	"time"

	"github.com/loadgen/loadgen/pkg/driver"
)

// maxLatency keeps the longest latency of the spread with the longest tail, 37 times the mean, well within the range of a time.Duration.
const maxLatency = time.Hour

// Config is what a target of this driver takes.
type Config struct {
	// Latency is the mean time from a request's start to its reply, a duration such as "100us", at most an hour.
	Latency string `hcl:"latency,optional" json:"latency"`
	// Spread is the distribution of latencies: "none", all equal the mean; "exponential"; "uniform", from 0 to twice the mean.
	Spread string `hcl:"spread,optional" json:"spread"`
	// Growth makes latencies grow with the request's number n in its stream, from 0. It multiplies those of Latency and Spread by 1 + x for "linear",
	// 1 + x² for "square" and 1 + log₂(1 + x) for "log", where x = n / GrowthAt. "" and "none" mean no growth.
	Growth string `hcl:"growth,optional" json:"growth,omitempty"`
	// GrowthAt is the number of the request that takes twice as long as the first; 0 for 1,000.
	GrowthAt int `hcl:"growth_at,optional" json:"growth_at,omitempty"`
	// MissEvery makes one in that many gets and deletes a miss; 0 for none.
	MissEvery int `hcl:"miss_every,optional" json:"miss_every"`
	// ErrorEvery makes one in that many requests an error; 0 for none.
	ErrorEvery int `hcl:"error_every,optional" json:"error_every"`

	parsed parsedLatency
}

// parsedLatency saves Reply from parsing the text each time.
type parsedLatency struct {
	text string
	mean time.Duration
}

// Validate says what is wrong with the config. Call it once the fields are set, before the first Reply.
func (c *Config) Validate() error {
	mean, err := time.ParseDuration(c.Latency)
	if err != nil || mean < 0 || mean > maxLatency {
		return fmt.Errorf(`latency %q is not a duration from "0s" to "1h", such as "100us"`, c.Latency)
	}
	switch c.Spread {
	case "none", "exponential", "uniform":
	default:
		return fmt.Errorf(`spread %q is none of "none", "exponential" and "uniform"`, c.Spread)
	}
	switch c.Growth {
	case "", "none", "linear", "square", "log":
	default:
		return fmt.Errorf(`growth %q is none of "none", "linear", "square" and "log"`, c.Growth)
	}
	if c.GrowthAt < 0 {
		return fmt.Errorf("growth_at is %d; write the number of the request that takes twice as long as the first, such as 1000", c.GrowthAt)
	}
	if c.MissEvery < 0 {
		return fmt.Errorf("miss_every is %d; write 0 for no misses, or one miss in how many", c.MissEvery)
	}
	if c.ErrorEvery < 0 {
		return fmt.Errorf("error_every is %d; write 0 for no errors, or one error in how many", c.ErrorEvery)
	}
	c.parsed = parsedLatency{c.Latency, mean}
	return nil
}

// Driver is the null driver, a [driver.Timed].
type Driver struct{}

var _ driver.Timed = Driver{}

// Name returns "null".
func (Driver) Name() string { return "null" }

// NewConfig returns a *Config that answers each request at once.
func (Driver) NewConfig() any { return &Config{Latency: "0s", Spread: "none"} }

// Outcomes lists the outcomes of replies.
func (Driver) Outcomes(v driver.Verb) []driver.Outcome { return outcomes[v] }

var outcomes = map[driver.Verb][]driver.Outcome{
	driver.Get:    {driver.OK, driver.Miss},
	driver.Delete: {driver.OK, driver.Miss},
	driver.Put:    {driver.OK},
}

// errorMessage is the message of a requested error.
var errorMessage = []byte("error asked for by error_every")

// stored is the value that every get finds: a checked one, as in datasets for replicated targets.
var stored = (&driver.Value{Size: driver.HeaderSize, Checked: true, Version: 1}).AppendTo(nil)

// Reply fills reply for req and returns its latency. Every get that is ok finds the same checked value. The config must be a valid *Config. Of one
// stream's requests to one endpoint, exactly every MissEvery-th is a miss and every ErrorEvery-th an error, with errors taking precedence; the
// position is staggered by stream and endpoint.
func (Driver) Reply(config any, req *driver.Request, reply *driver.Reply) time.Duration {
	c := config.(*Config)
	*reply = driver.Reply{}
	turn := uint64(req.Stream) + uint64(req.Endpoint) + req.N
	switch {
	case hits(turn, c.ErrorEvery):
		reply.Outcome, reply.Message = driver.Error, errorMessage
	case hits(turn, c.MissEvery) && req.Verb != driver.Put:
		reply.Outcome = driver.Miss
	case req.Verb == driver.Get:
		reply.Value = stored
	}
	return c.latency(req)
}

// hits reports whether turn is the last in a group of every.
func hits(turn uint64, every int) bool {
	return every > 0 && turn%uint64(every) == uint64(every)-1
}

// latency returns the delay of the reply to req.
func (c *Config) latency(req *driver.Request) time.Duration {
	mean := c.parsed.mean
	if c.parsed.text != c.Latency {
		mean, _ = time.ParseDuration(c.Latency) // changed since Validate, or never validated
	}
	if c.Growth == "" && c.Spread == "none" {
		return mean
	}
	took := c.grown(req.N) * float64(mean)
	switch c.Spread {
	case "exponential":
		took *= -math.Log(uniform(req))
	case "uniform":
		took *= 2 * uniform(req)
	}
	return time.Duration(math.Min(took, float64(longest)))
}

// longest bounds a growing latency, so that it stays well within the range of a time.Duration.
const longest = 100 * maxLatency

// grown returns the factor by which the n-th request of a stream takes longer than the first.
func (c *Config) grown(n uint64) float64 {
	x := float64(n) / float64(cmp.Or(c.GrowthAt, 1000))
	switch c.Growth {
	case "linear":
		return 1 + x
	case "square":
		return 1 + x*x
	case "log":
		return 1 + math.Log2(1+x)
	}
	return 1
}

// uniform hashes the request's place to a number in (0, 1].
func uniform(req *driver.Request) float64 {
	h := mix(mix(mix(uint64(req.Stream))^req.N) ^ uint64(req.Endpoint))
	return float64(h>>11+1) / (1 << 53)
}

// mix is the output function of SplitMix64 (Steele, Lea and Flood, OOPSLA 2014), a well-mixed bijection.
func mix(x uint64) uint64 {
	x += 0x9E3779B97F4A7C15
	x = (x ^ x>>30) * 0xBF58476D1CE4E5B9
	x = (x ^ x>>27) * 0x94D049BB133111EB
	return x ^ x>>31
}
