package pmlog

import (
	"fmt"
	"io"
)

// recover finds the end of the log after a crash, or after a Close, and begins a new era there.
func (l *Append) recover() error {
	l.found = Recovery{Clean: l.heads.clean, Holes: l.heads.holes}
	begin := min(l.end, l.size)
	if err := l.walk(); err != nil {
		return err
	}
	if err := keep(l.heads.m, begin, min(l.end, l.size)-begin); err != nil {
		return err
	}
	if err := l.heads.m.Fence(); err != nil {
		return err
	}
	l.read.forget()
	h := l.heads.header
	l.found.Records = l.next - h.first - l.found.Holes
	// From the end on, only records of the new era are valid. Leftovers of this era, which a later crash might complete, are not.
	h.era++
	h.clean, h.checkpoint, h.next, h.holes = false, uint64(l.end), l.next, l.found.Holes
	return l.heads.write(h)
}

// walk moves the end of the log from the checkpoint past the last record of this era.
func (l *Append) walk() error {
	for {
		r, p, valid, err := l.at(&l.read, l.end, l.heads.era)
		if err != nil {
			return err
		}
		if !valid || r.seq != l.next {
			if err := l.torn(r); err != nil {
				return err
			}
			if found, err := l.skip(); err != nil || !found {
				return err
			}
			continue
		}
		l.end, l.next = l.end+span(int64(len(p)), l.padding), l.next+1
		l.found.Walked++
	}
}

// skip looks for a record of this era after the end, where the next one is missing. In relaxed order it moves the end and the next number to that
// record. In a grouped log it drops the record, if the missing one was not durable when the record was stored.
func (l *Append) skip() (found bool, err error) {
	torn := 0
	for off := l.end; off+recordHeader <= l.size; off += l.padding {
		r, _, valid, err := l.at(&l.read, off, l.heads.era)
		switch {
		case err != nil:
			return false, err
		case !valid && !l.present(r, off):
		case !valid || r.seq <= l.next || r.seq-r.lag <= l.next && !l.heads.clean:
			torn++
		case !l.relaxed || l.heads.clean:
			return false, fmt.Errorf("record %d at %d is missing or damaged, but record %d at %d is there: %w", l.next, l.end, r.seq, off, ErrCorrupt)
		default:
			if err := l.bury(l.end, off); err != nil {
				return false, err
			}
			l.found.Holes += r.seq - l.next
			l.end, l.next = off, r.seq
			return true, nil
		}
	}
	l.found.Torn += torn
	return false, nil
}

// bury removes the marks from the bytes in a hole. Otherwise an unfinished record of an earlier era there could become valid once bytes written later
// complete it. The change becomes durable with the records around it.
func (l *Append) bury(lo, hi int64) error {
	for off := lo; off < hi; off += l.padding {
		r, err := l.read.head(off)
		if err != nil {
			return err
		}
		if era := l.era(r, off); era < l.heads.generation || era > l.heads.era {
			continue
		}
		l.found.Torn++
		if err := l.heads.m.Store8(off+markAt, 0); err != nil {
			return err
		}
	}
	return nil
}

// at reads the record at off. It is valid only if its era is oldest or later.
func (l *Append) at(w *window, off int64, oldest uint64) (r record, payload []byte, valid bool, err error) {
	if r, err = w.head(off); err != nil {
		return r, nil, false, err
	}
	if era := l.era(r, off); era < oldest || era > l.heads.era {
		return r, nil, false, nil
	}
	payload, valid, err = w.payload(off, r)
	if l.group != nil {
		r.seq, r.lag = r.seq&maxGroupedSeq, r.seq>>lagAt
	}
	return r, payload, valid, err
}

// torn judges the bytes after the last record. r is the header there, if there is room for one: either no record of this era, or one that a crash
// left incomplete.
func (l *Append) torn(r record) error {
	if !l.present(r, l.end) {
		return nil
	}
	if l.heads.clean || l.length && r.word() != 0 {
		return fmt.Errorf("record %d at %d is damaged: %w", l.next, l.end, ErrCorrupt)
	}
	return nil
}

// present reports whether r is a record of the header's era, and not bytes of a payload.
func (l *Append) present(r record, off int64) bool { return l.era(r, off) == l.heads.era }

// era returns the era of a record at off; for any other bytes, it is a large random number.
func (l *Append) era(r record, off int64) uint64 { return mark(l.heads.salt, off, 0) ^ r.mark }

// Reader reads the records of a log from the first on. One goroutine at a time may use it; others may append meanwhile.
type Reader struct {
	log        *Append
	read       window
	generation uint64
	off        int64
	end        int64  // end of the log at the last call; bytes read beyond it are stale
	seq        uint64 // number of the next record
	holes      uint64 // sequence numbers without a record, so far
	damaged    bool   // ErrCorrupt was returned, and no record has been since
}

// Reader returns a new Reader of the log's records, including those appended before it reaches the end.
func (l *Append) Reader() *Reader {
	l.lock()
	defer l.unlock()
	h := l.heads
	return &Reader{log: l, read: window{region: l.region}, generation: h.generation, off: dataStart, seq: h.first}
}

// Next returns the next record and its sequence number. The payload is valid until the next call. It returns io.EOF after the last record, ErrCorrupt
// if a record is not as it was acknowledged, and ErrCleared. After ErrCorrupt, the next call goes on with the next record that is whole, or io.EOF.
func (r *Reader) Next() (seq uint64, payload []byte, err error) {
	l := r.log
	l.lock()
	defer l.unlock()
	if l.heads.generation != r.generation {
		return 0, nil, ErrCleared
	}
	if r.end != l.end {
		r.end = l.end
		r.read.forget()
	}
	for off := r.off; off < l.end; off += l.padding {
		rec, p, valid, err := l.at(&r.read, off, r.generation)
		if err != nil {
			return 0, nil, err
		}
		missing, holes := rec.seq-r.seq, l.heads.holes-r.holes
		if valid && (missing <= holes || r.damaged && missing < l.next-r.seq) {
			r.off, r.seq, r.holes, r.damaged = off+span(int64(len(p)), l.padding), rec.seq+1, r.holes+min(missing, holes), false
			return rec.seq, p, nil
		}
		if holes == 0 && !r.damaged {
			break
		}
	}
	if r.damaged {
		r.off, r.seq, r.damaged = l.end, l.next, false
	}
	if r.off == l.end && r.seq == l.next {
		return 0, nil, io.EOF
	}
	r.damaged = true
	return 0, nil, fmt.Errorf("record %d at %d: %w", r.seq, r.off, ErrCorrupt)
}
