package command

import (
	"errors"
	"fmt"
	"io"
	"math"
	"slices"

	"github.com/loadgen/loadgen/internal/base/quantity"
	"github.com/loadgen/loadgen/internal/base/safefile"
	"github.com/loadgen/loadgen/internal/plan/dialect"
	"github.com/loadgen/loadgen/internal/plan/reuse"
	"github.com/loadgen/loadgen/internal/plan/trace"
	"github.com/loadgen/loadgen/internal/result/footprint"
)

// hitFlags ask how much memory holds a hit ratio, or which one a memory holds.
type hitFlags struct {
	trace, form, of, phase, hits, item string

	ratio float64      // of --hits; 0 for none
	each  float64      // of an item, in bytes: --item's, or estimated for a key and a value as they are measured
	curve *reuse.Curve // nil if there is no such question
	span  float64      // seconds that gets and puts took; 0 if unknown
	left  uint64       // lines of the trace that are left out
}

// hold is what a memory holds.
type hold struct {
	Gets     float64        `json:"gets"`
	Left     uint64         `json:"left_out"`       // lines of a trace that are no get, put or delete
	Most     float64        `json:"most_hit_ratio"` // in any memory
	HitRatio reuse.Estimate `json:"hit_ratio"`
	Memory   reuse.Estimate `json:"memory"` // bytes; 0 if none is enough
	Items    float64        `json:"items"`
	Age      float64        `json:"eviction_age_seconds"` // since the last use of what is evicted; 0 if unknown, or if hardly anything is evicted
}

// ask reads the flags of the question, and its trace or plan.
func (f *sizeFlags) ask(w io.Writer, value int64, address bool) (err error) {
	h := &f.hitFlags
	switch {
	case h.trace+h.of+h.phase+h.hits+h.item == "":
		return nil
	case (h.trace == "") == (h.of == ""), (h.of == "") != (h.phase == ""), (h.hits == "") == (f.memory == ""), (h.item == "") != address, f.items != "":
		return errors.New("for a hit ratio, write --trace FILE or --of PLAN --phase NAME; --hits 95% or --maxmemory 4GiB; a server's address or --item 304B; and no --items")
	case h.item != "":
		if value, err = dialect.ParseSize(h.item); err != nil || value < 1 {
			return fmt.Errorf("--item %q: write a size above 0, such as 304B", h.item)
		}
		h.each = float64(value)
	default:
		h.each = float64(value + int64(f.key) + perKey)
	}
	if h.hits != "" {
		if h.ratio, err = shareOf("--hits", h.hits); err != nil {
			return err
		}
	}
	h.curve = reuse.NewCurve()
	if h.trace != "" {
		err = h.replay()
	} else {
		err = f.draw(w)
	}
	if err == nil && h.curve.Gets == 0 {
		err = errors.New("there is no get, and only gets hit")
	}
	return err
}

// draw makes the draws of the plan's phase.
func (f *sizeFlags) draw(w io.Writer) error {
	p, err := f.load(f.of, w)
	if err != nil {
		return err
	}
	ph := p.Phase(f.phase)
	switch {
	case ph == nil:
		return fmt.Errorf("--phase %s: the plan has no phase of this name", dialect.Quote(f.phase))
	case ph.Trace() != nil:
		return fmt.Errorf("phase %s replays a trace: write --trace FILE --form %s", f.phase, ph.Trace().Form)
	}
	if err := f.curve.Draw(p, ph, int64(f.each)); err != nil {
		return fmt.Errorf("%s: %w: name a phase with a load, whose keys are made by a format; of any other, record a trace", f.of, err)
	}
	if rate := ph.OpsPerSecond(); rate > 0 {
		f.span = f.curve.Refs / rate
	}
	return nil
}

// replay reads the trace.
func (h *hitFlags) replay() error {
	file, err := safefile.Open(h.trace)
	if err != nil {
		return err
	}
	defer file.Close()
	if h.form == trace.Requests {
		return errors.New("--form requests: the keys in whole requests are not known here: write a trace of another form")
	}
	r, err := trace.NewReader(file, h.form, true)
	if err != nil {
		return fmt.Errorf("--form: %w", err)
	}
	r.Filling()
	for rec := (trace.Record{}); ; {
		ok, err := r.Next(&rec)
		switch {
		case err == io.EOF:
			return nil
		case err != nil:
			return fmt.Errorf("%s:%w", h.trace, err)
		case !ok:
			h.left++
		default:
			size := h.each
			if rec.Size > 0 && h.item == "" {
				size = float64(len(rec.Key) + rec.Size + perKey)
			}
			if h.form == trace.Mooncake {
				for id := range slices.Chunk(rec.Key, 4) {
					h.curve.Use(rec.Verb, id, int64(size))
				}
			} else if !h.curve.Use(rec.Verb, rec.Key, int64(size)) {
				h.left++
			}
			h.span = float64(rec.At) / 1e9
		}
	}
}

// in answers the question for a store, from what its items take.
func (h *hitFlags) in(p *footprint.Footprint, memory float64) (*hold, error) {
	is := &hold{
		Gets: h.curve.Gets, Left: h.left, Most: h.curve.HitRatio(math.Inf(1)).Value,
		HitRatio: reuse.Estimate{Value: h.ratio, Low: h.ratio, High: h.ratio}, Memory: reuse.Estimate{Value: memory, Low: memory, High: memory},
	}
	room := h.curve.Room(h.ratio)
	switch {
	case memory > 0:
		items, _, _ := p.Within(memory)
		if items < 1 {
			return nil, fmt.Errorf("--maxmemory: one item takes %s: write more", footprint.Size(p.Fixed+p.Item))
		}
		room.Value = items * h.each
		is.HitRatio = h.curve.HitRatio(room.Value)
	case is.Most < h.ratio:
		return is, nil
	default:
		takes := func(room float64) float64 { bytes, _ := p.Of(min(room, h.curve.Bytes) / h.each); return bytes }
		is.Memory = reuse.Estimate{Value: takes(room.Value), Low: takes(room.Low), High: takes(room.High)}
	}
	is.Items = room.Value * h.curve.Refs / h.curve.Bytes
	if inserts := h.curve.Refs * (1 - is.HitRatio.Value); inserts > is.Items {
		is.Age = is.Items / inserts * h.span
	}
	return is, nil
}

// text writes the answer for people.
func (is *hold) text(w io.Writer) error {
	with := func(of reuse.Estimate, write func(float64) string) string {
		if of.Low == of.High {
			return write(of.Value)
		}
		return fmt.Sprintf("%s (%s–%s)", write(of.Value), write(of.Low), write(of.High))
	}
	says := with(is.HitRatio, quantity.Percent) + " hit is out of reach"
	if is.Items > 0 {
		says = fmt.Sprintf("%s hit with %s: %s, evicted as by LRU", with(is.HitRatio, quantity.Percent), with(is.Memory, footprint.Size), quantity.Count(uint64(math.Round(is.Items)), "item"))
	}
	says += fmt.Sprintf("\n%s of %s are first ones, or first after a delete\n", quantity.Percent(1-is.Most), quantity.Count(uint64(is.Gets), "get"))
	if is.Left > 0 {
		says += quantity.Count(is.Left, "line") + " of the trace left out: only gets, puts and deletes count\n"
	}
	if is.Age > 0 {
		says += fmt.Sprintf("Items are evicted %s after their last use\n", quantity.Duration(is.Age))
	}
	if is.Age > 0 && is.Age < 10 {
		says += "Warning: Redis' LRU clock counts seconds, so that it hits less: by 4 points at 0.3 s\n"
	}
	_, err := io.WriteString(w, says)
	return err
}
