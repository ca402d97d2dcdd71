package capture

import (
	"cmp"
	"errors"
	"hash/maphash"
	"io"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/loadgen/loadgen/internal/plan/trace"
)

// Profile is what a load needs to know of a trace of RESP in order to be like it. It is of the commands with one key.
type Profile struct {
	Requests, LeftOut int64
	Ops               []ProfileOp   // commonest first
	Sizes             map[int]int64 // of values that SET stored, how often; only their mean, if there are many
	Distinct          int64         // keys
	Keys              int64         // with those that chance left out, if keys are picked by zipf
	Skew, Error       float64       // of zipf, and its standard error; 0 if keys are picked alike
	Few               bool          // too few requests a key to tell its skew
	Rate              float64       // of these commands, per second
	Constant          bool          // requests came evenly spaced
}

// ProfileOp is a command. Of its words, the first one is its name, the second one its key. Others are the same in all requests, a number, "x" for words
// that differ, or "" for the last one if it is a value that differs.
type ProfileOp struct {
	Count int64
	Words []string
}

const (
	enoughAKey = 10  // requests, to tell how keys are picked
	mostSizes  = 100 // that a plan may list
	mostWords  = 256 // of a command
)

// manyKeys are commands whose keys may be several. The others have it as their first argument, if it is replaced in [maskTable].
var manyKeys = set(`MGET MSET MSETNX SMOVE SDIFF SDIFFSTORE SINTER SINTERSTORE SUNION SUNIONSTORE RPOPLPUSH RENAME RENAMENX PFCOUNT PFMERGE PUBLISH SPUBLISH
	ECHO PING COPY LMOVE BLMOVE BRPOPLPUSH ZUNIONSTORE ZINTERSTORE ZDIFFSTORE`)

// oneKey reports whether a command has one key, behind its name.
func oneKey(name string, words []string) bool {
	several := name == "DEL" || name == "UNLINK" || name == "EXISTS" || name == "TOUCH"
	return len(words) > 1 && len(words) <= mostWords && strings.HasPrefix(maskOf()[name], "k") && !manyKeys[name] && (!several || len(words) == 2)
}

// NewProfile reads a trace of form [trace.Requests].
func NewProfile(r io.Reader) (*Profile, error) {
	in, err := trace.NewReader(r, trace.Requests, true)
	if err != nil {
		return nil, err
	}
	p := &Profile{}
	seed, keys, ops, sizes := maphash.MakeSeed(), map[uint64]int64{}, map[string]*ProfileOp{}, map[int]int64{}
	var rec trace.Record
	last, squares, all, stored := int64(0), 0.0, 0.0, 0
	for {
		if _, err := in.Next(&rec); err == io.EOF {
			break
		} else if err != nil {
			return nil, err
		}
		gap := float64(rec.At - last)
		last, squares, all = rec.At, squares+gap*gap, all+1
		words, size, err := command(rec.Key)
		if err == nil && size < len(rec.Key) && strings.EqualFold(words[0], "SELECT") {
			rec.Key = rec.Key[size:]
			words, size, err = command(rec.Key)
		}
		if err != nil || len(words) == 0 {
			return nil, errors.New("no command of RESP: only traces of Redis have a profile")
		}
		words[0] = strings.ToUpper(words[0])
		if size < len(rec.Key) || !oneKey(words[0], words) {
			p.LeftOut++
			continue
		}
		p.Requests++
		keys[maphash.String(seed, words[1])]++
		if words[0] == "SET" && len(words) > 2 {
			sizes[len(words[2])]++
			stored += len(words[2])
		}
		if o := ops[words[0]]; o != nil {
			o.like(words)
		} else {
			ops[words[0]] = &ProfileOp{1, words}
		}
	}
	if p.Requests == 0 {
		return nil, errors.New("no command with one key")
	}
	for _, o := range slices.SortedFunc(maps.Values(ops), func(a, b *ProfileOp) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), cmp.Compare(a.Words[0], b.Words[0]))
	}) {
		p.Ops = append(p.Ops, *o)
	}
	if p.Sizes = sizes; len(sizes) > mostSizes {
		n := ops["SET"].Count
		p.Sizes = map[int]int64{int(math.Round(float64(stored) / float64(n))): n}
	}
	if last > 0 {
		mean := float64(last) / max(all-1, 1)
		p.Rate, p.Constant = 1e9/mean*float64(p.Requests)/all, squares/max(all-1, 1) < 1.25*mean*mean // Poisson's gaps have twice their mean's square
	}
	p.pick(slices.Collect(maps.Values(keys)))
	return p, nil
}

// like enters another request of the command.
func (o *ProfileOp) like(words []string) {
	o.Count++
	for i := 2; i < min(len(words), len(o.Words)); i++ {
		if was := o.Words[i]; was == words[i] || was == "" {
			continue
		} else if _, err := strconv.ParseFloat(was, 64); err == nil {
			continue
		}
		if o.Words[i] = "x"; i == len(o.Words)-1 {
			o.Words[i] = ""
		}
	}
}

// pick says how keys with these counts were picked. The skew is the one under which the counts are likeliest: each is a Poisson draw for a rank that is
// drawn from all. The number of keys is the one of which as many would be seen as were.
func (p *Profile) pick(counts []int64) {
	p.Distinct = int64(len(counts))
	p.Keys = p.Distinct
	if p.Few = p.Requests < enoughAKey*p.Distinct; p.Few {
		return
	}
	often := map[int64]float64{}
	for _, c := range counts {
		often[c]++
	}
	likely := func(s float64) float64 {
		return newRanks(s, float64(p.Distinct), float64(p.Requests)).likelihood(often)
	}
	low, high, step := 0.0, 3.0, 0.02
	for range 24 { // golden section
		if a, b := high-(high-low)*0.618034, low+(high-low)*0.618034; likely(a) < likely(b) {
			low = a
		} else {
			high = b
		}
	}
	s := (low + high) / 2
	if likely(s) < likely(0)+3 {
		return // chance makes picks that are alike differ as much
	}
	curve := 2*likely(s) - likely(s+step) - likely(max(s-step, 0))
	p.Error = step / math.Sqrt(max(curve, 1e-9))
	p.Skew, p.Keys = s, int64(math.Round(newRanks(s, float64(p.Distinct), float64(p.Requests)).n))
}

// ranks are those of a zipf distribution, in groups of about the same share.
type ranks struct {
	n      float64   // how many
	mean   []float64 // requests that a rank of the group has on average
	logs   []float64 // of mean
	shares []float64 // logarithms of the groups' shares of all ranks
}

// newRanks returns the distribution of a skew for which so many keys of all are seen in so many requests.
func newRanks(s, seen, requests float64) *ranks {
	low, high := seen, 100*seen
	for range 20 {
		n := math.Sqrt(low * high)
		r := ranksOf(s, n, requests)
		if found := -n * math.Expm1(r.chance(0)); found < seen {
			low = n
		} else {
			high = n
		}
	}
	return ranksOf(s, low, requests)
}

func ranksOf(s, n, requests float64) *ranks {
	r, sum := &ranks{n: n}, 0.0
	for at := 1.0; at <= n; {
		many := min(max(1, math.Floor(at/20)), n-at+1)
		log := -s * math.Log(at+(many-1)/2)
		r.logs, r.shares = append(r.logs, log), append(r.shares, math.Log(many/n))
		sum, at = sum+many*math.Exp(log), at+many
	}
	for i := range r.logs {
		r.logs[i] += math.Log(requests / sum)
		r.mean = append(r.mean, math.Exp(r.logs[i]))
	}
	return r
}

// likelihood is the logarithm of how likely it is that so many keys, of those that are seen, have each count.
func (r *ranks) likelihood(often map[int64]float64) (sum float64) {
	seen := math.Log(-math.Expm1(r.chance(0)))
	for c, keys := range often {
		sum += keys * (r.chance(float64(c)) - seen)
	}
	return sum
}

// chance is the logarithm of how likely a key has a count.
func (r *ranks) chance(count float64) float64 {
	terms, top := make([]float64, len(r.mean)), math.Inf(-1)
	for i, mean := range r.mean {
		terms[i] = count*r.logs[i] - mean + r.shares[i]
		top = max(top, terms[i])
	}
	all := 0.0
	for _, t := range terms {
		all += math.Exp(t - top)
	}
	factorial, _ := math.Lgamma(count + 1)
	return top + math.Log(all) - factorial
}
