package measure

// mostHeld bounds the memory of a decoded [Totals], in bytes. A few bytes of its form can stand for a histogram of 58 KiB, so 16 MiB of them could
// need more memory than a machine has. It is enough for 2,300 histograms that reach up to the largest value.
const mostHeld = 128 << 20

// Sizes, in bytes. opBytes excludes the buckets of an Op's histograms, its acks, kinds, split, bins, growth, steps and checks.
const (
	opBytes       = 1432
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
	acks, kinds := o.Acks[:cap(o.Acks)], o.Kinds[:cap(o.Kinds)]
	for i := range acks {
		n += acks[i].Bytes()
	}
	for i := range kinds {
		n += kinds[i].Service.Bytes() + kinds[i].Response.Bytes()
	}
	n += 8 * len(o.Checks)
	if o.Split != nil {
		n += o.Split.Write.Bytes() + o.Split.Sync.Bytes()
	}
	if o.Growth != nil {
		bins := o.Growth.Bins[:cap(o.Growth.Bins)]
		for i := range bins {
			n += bins[i].Answered.Bytes()
		}
	}
	for i := range o.Bins {
		for _, b := range []*Bins{o.Bins[i], o.Turns[i], o.Keys.Bins[i], o.Keys.Turns[i]} {
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
