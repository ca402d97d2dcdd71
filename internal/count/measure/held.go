package measure

import "github.com/loadgen/loadgen/pkg/hist"

// mostHeld bounds the memory of a decoded [Totals], in bytes. A few bytes of its form can stand for a histogram of 58 KiB, so 16 MiB of them could
// need more memory than a machine has. It is enough for 2,300 histograms that reach up to the largest value.
const mostHeld = 128 << 20

// Sizes, in bytes. opBytes excludes the buckets of an Op's histograms, its acks, kinds, split, bins, growth, steps and checks.
const (
	opBytes       = 1440
	binsBytes     = 8 + 8*NumBins
	requestsBytes = 64
)

// bytes is held plus the ledgers of requests.
func (t *Totals) bytes() int { return t.held() + requestsBytes*cap(t.Requests) }

// held returns the bytes that the histograms and bins of t take, used or not.
func (t *Totals) held() int {
	n := t.Waited.Bytes()
	for i := 0; t.Links != nil && i < NumStages; i++ {
		n += t.Links.Times[i].Bytes()
	}
	for _, o := range t.Ops {
		n += o.held()
	}
	for _, o := range t.Scenarios {
		n += o.held()
	}
	return n
}

func (o *Op) held() int {
	if o == nil {
		return 0
	}
	n := opBytes
	for _, h := range o.hists() {
		n += h.Bytes()
	}
	o.rareHists(func(h *hist.Hist) { n += h.Bytes() })
	n += 8 * len(o.Checks)
	for _, all := range o.allBins() {
		for _, b := range all {
			if b != nil {
				n += binsBytes
			}
		}
	}
	for _, step := range o.Steps {
		n += step.held()
	}
	return n
}
