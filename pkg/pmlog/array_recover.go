package pmlog

import "fmt"

// condition is the state of one copy of a value.
type condition int

const (
	never   condition = iota // not written in this generation
	whole                    // a value
	torn                     // begun in this generation, but not whole
	foreign                  // bytes that no write leaves
)

// recover reads all slots after a crash or a Close, voids torn copies, and begins a new era.
func (l *Array) recover() error {
	l.found = Recovery{Clean: l.heads.clean}
	w := window{region: l.region}
	for i := range l.slots {
		if err := l.recoverSlot(&w, i); err != nil {
			return err
		}
	}
	if err := l.heads.m.Fence(); err != nil {
		return err
	}
	h := l.heads.header
	h.era++
	h.clean = false
	if err := l.heads.write(h); err != nil {
		return err
	}
	l.adopt()
	return nil
}

// recoverSlot finds the value of a slot.
func (l *Array) recoverSlot(w *window, slot int) error {
	var is [2]condition
	var value [2]state
	for i := range is {
		var err error
		if is[i], value[i], err = l.judge(w, l.at(slot, i)); err != nil {
			return err
		}
		value[i].copy = i
	}
	s := &l.slots[slot]
	newer := 0
	if value[1].seq > value[0].seq {
		newer = 1
	}
	s.state = value[newer]
	if !plausible(is[newer], is[1-newer], value[newer].seq, value[1-newer].seq, l.heads.clean) {
		s.state = state{era: l.heads.era, err: fmt.Errorf("the value of slot %d is lost: %w", slot, ErrCorrupt)}
		l.found.Corrupt++
		return nil
	}
	if s.size > 0 { // a voided copy has none
		l.found.Records++
	}
	for i := range is {
		switch is[i] {
		case whole:
			if err := keep(l.heads.m, l.at(slot, i), recordHeader+value[i].size); err != nil {
				return err
			}
		case torn:
			l.found.Torn++
			var void [recordHeader]byte // with the number 0, so that no later write completes it; durable before the header that follows
			seal(&void, 0, 0, 0, mark(l.salt, l.at(slot, i), l.heads.era))
			if err := l.heads.m.Put(l.at(slot, i), nil, void[:]); err != nil {
				return fmt.Errorf("void what was torn: %w", err)
			}
		}
	}
	return nil
}

// plausible reports whether a crash can leave a slot in this state. Values are written to the copies in turn, from number 1 on. At most one is being
// written, over the older copy. A voided copy has the number 0.
func plausible(newer, older condition, seq, before uint64, clean bool) bool {
	switch {
	case newer == foreign || older == foreign:
		return false
	case newer == torn && older == torn:
		return false
	case clean && (newer == torn || older == torn):
		return false
	case newer == whole && older == whole:
		return before == 0 || before == seq-1
	case newer == whole && older == never:
		return seq < 2
	}
	return true
}

// judge reads one copy of a value.
func (l *Array) judge(w *window, off int64) (condition, state, error) {
	r, err := w.head(off)
	era := mark(l.salt, off, 0) ^ r.mark
	switch {
	case err != nil:
		return never, state{}, err
	case r.mark == 0 || era < l.heads.generation:
		return never, state{}, nil
	case era > l.heads.era:
		return foreign, state{}, nil
	case int64(r.size&^published) > l.capacity:
		return torn, state{}, nil
	}
	p, valid, err := w.payload(off, r)
	if err != nil || !valid {
		return torn, state{}, err
	}
	return whole, state{era: era, seq: r.seq, size: int64(len(p))}, nil
}
