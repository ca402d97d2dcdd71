package log

import (
	"bytes"
	"encoding/gob"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"

	"github.com/loadgen/loadgen/pkg/driver/localfile"
	"github.com/loadgen/loadgen/pkg/pmlog"
)

// claim describes what a worker wrote in a phase, for another process to check. It is encoded with encoding/gob, since the program that writes it
// also reads it.
type claim struct {
	Root  string // no file lies outside it
	Dir   string // directory below Root
	Form  form
	Files []fileClaim
}

// fileClaim is the claim about one log: per session if it is read from its beginning, per place if its places are reused.
type fileClaim struct {
	Name     string
	Older    uint64 // entries of earlier phases before those of this one
	Sessions []sessionClaim
	Places   []placeClaim
}

// sessionClaim says that the log holds the session's entries Base+1 to Acked, and possibly those up to Issued, in this order.
type sessionClaim struct {
	ID                  int
	Base, Acked, Issued uint64
}

// placeClaim says that a place holds Acked, or possibly Issued; 0 means nothing.
type placeClaim struct {
	Place         int // number of the slot; for raw, the offset in the file
	Acked, Issued mark
	Erases        bool // the last operation begun may have emptied it
	Untouched     bool // the place may hold anything but an entry of this phase
}

// claim returns the claim about all files.
func (s *store) claim() ([]byte, error) {
	c := claim{Form: s.form}
	c.Root, c.Dir = s.root.Way()
	for _, f := range s.files {
		one := fileClaim{Name: f.name, Older: f.older.Load()}
		for i := range f.slots {
			if at := &f.slots[i]; at.known {
				one.Places = append(one.Places, placeClaim{Place: i, Acked: at.acked, Issued: at.issued, Erases: at.erases})
			}
		}
		for _, session := range f.sessions {
			if f.again {
				one.Places = append(one.Places, session.places()...)
			} else {
				one.Sessions = append(one.Sessions, sessionClaim{session.id, session.base, session.acked, session.issued})
			}
		}
		c.Files = append(c.Files, one)
	}
	var b bytes.Buffer
	err := gob.NewEncoder(&b).Encode(&c)
	return b.Bytes(), err
}

// places returns what the session's part of a raw file holds: the entries of its last round and, behind them, those of the round before; or nothing
// of this phase where it has not written yet. It leaves out entries that the entry begun last may have overwritten in part.
func (s *session) places() (list []placeClaim) {
	t := s.turns
	if t == nil {
		return nil
	}
	at := t.from
	pass := func(number uint64, claim placeClaim) {
		if claim.Place = int(at); !claim.Untouched {
			claim.Acked = markOf(s.id, number)
			claim.Issued = claim.Acked
		}
		list = append(list, claim)
		at += int64(s.make.size(markOf(s.id, number)))
	}
	for number := t.first; number <= s.acked; number++ {
		pass(number, placeClaim{})
	}
	if s.issued > s.acked {
		size := int64(s.make.size(markOf(s.id, s.issued)))
		if at+size <= t.to {
			at += size
		} else {
			list = slices.DeleteFunc(list, func(c placeClaim) bool { return t.renewed || int64(c.Place) < t.from+size })
		}
	}
	if t.renewed {
		return list
	}
	if t.before == 0 {
		for number := s.issued + 1; at+int64(s.make.size(markOf(s.id, number))) <= t.to; number++ {
			pass(number, placeClaim{Untouched: true})
		}
		return list
	}
	end := at
	at = t.from
	for number := t.before; number < t.first; number++ {
		if at < end {
			at += int64(s.make.size(markOf(s.id, number)))
			continue
		}
		pass(number, placeClaim{})
	}
	return list
}

// maxWrong is the number of errors to report.
const maxWrong = 5

// verifier checks one log after another.
type verifier struct {
	*checker
	form  form
	proof localfile.Proof
}

// Verify implements localfile.Driver.
func (Driver) Verify(text []byte) (localfile.Proof, error) {
	var c claim
	if err := gob.NewDecoder(bytes.NewReader(text)).Decode(&c); err != nil {
		return localfile.Proof{}, fmt.Errorf("claim about log files: %w", err)
	}
	if c.Form.Kind.Size < localfile.StampSize {
		return localfile.Proof{}, fmt.Errorf("claim about log files: entries of %d bytes", c.Form.Kind.Size)
	}
	root, err := localfile.OpenBelow(c.Root, c.Dir)
	if err != nil {
		return localfile.Proof{}, err
	}
	defer root.Close()
	v := verifier{checker: newChecker(c.Form.Kind), form: c.Form, proof: localfile.Proof{Wrong: []string{}}}
	for i := range c.Files {
		if err := v.file(root, &c.Files[i]); err != nil {
			v.wrong("%s: %v", c.Files[i].Name, err)
			v.missing(&c.Files[i])
		}
	}
	return v.proof, nil
}

func (v *verifier) wrong(format string, args ...any) {
	if len(v.proof.Wrong) < maxWrong {
		v.proof.Wrong = append(v.proof.Wrong, fmt.Sprintf(format, args...))
	}
}

// missing counts the entries of a log that could not be opened.
func (v *verifier) missing(f *fileClaim) {
	for _, s := range f.Sessions {
		v.proof.Acknowledged += s.Acked - s.Base
	}
	for _, p := range f.Places {
		if p.Acked != 0 {
			v.proof.Acknowledged++
		}
	}
}

// file verifies a log.
func (v *verifier) file(root *os.Root, f *fileClaim) error {
	if len(f.Sessions) == 0 && len(f.Places) == 0 {
		return nil // a file that is extended when written to, and was never written to
	}
	volume, err := v.form.view(root, f.Name)
	if err != nil {
		return err
	}
	if array, ok := volume.(arrayVolume); ok {
		v.places(f, func(place int, to []byte) ([]byte, error) { return array.Read(place, to) })
	} else if raw, ok := volume.(rawVolume); ok {
		v.places(f, func(place int, to []byte) ([]byte, error) {
			to = append(to, make([]byte, v.Size)...)
			n, err := raw.ReadAt(to, int64(place))
			if to = to[:n]; n >= localfile.StampSize {
				if to = to[:min(n, v.size(markIn(to)))]; err == io.EOF { // to the end of the entry, if there is one
					err = nil
				}
			}
			return to, err
		})
	} else {
		v.entries(f, volume.reader(0, 1))
	}
	return volume.close()
}

// each calls f with every remaining entry, and returns how many there were.
func each(r reader, f func(p []byte)) (n uint64, err error) {
	for ; ; n++ {
		p, err := r.next()
		if errors.Is(err, io.EOF) {
			return n, nil
		}
		if err != nil {
			return n, err
		}
		f(p)
	}
}

// entries verifies a log that is read from its beginning.
func (v *verifier) entries(f *fileClaim, r reader) {
	type progress struct {
		sessionClaim
		next uint64
	}
	sessions := map[int]*progress{}
	for _, s := range f.Sessions {
		sessions[s.ID] = &progress{s, s.Base + 1}
		v.proof.Acknowledged += s.Acked - s.Base
	}
	older := f.Older
	check := func(p []byte) {
		if older > 0 {
			older--
			if !v.foreign(p) {
				v.wrong("%s: an entry of this phase comes before all of an earlier one's", f.Name)
			}
			return
		}
		m, ok := v.read(p)
		s := sessions[m.session()]
		switch {
		case v.foreign(p):
			v.wrong("%s: an entry that was not written in this phase", f.Name)
		case !ok || s == nil:
			v.wrong("%s: an entry that is not as any session wrote it", f.Name)
		case m.number() < s.next:
			v.wrong("%s: %v, where %v was due", f.Name, m, markOf(s.ID, s.next))
		case m.number() > s.Issued:
			v.wrong("%s: %v, which was never issued", f.Name, m)
		default:
			if m.number() > s.next {
				v.wrong("%s: %v, where %v was due", f.Name, m, markOf(s.ID, s.next))
			}
			s.next = m.number() + 1
			v.proof.Recovered++
			if m.number() <= s.Acked {
				v.proof.Verified++
			}
		}
	}
	n, err := each(r, check)
	for errors.Is(err, pmlog.ErrCorrupt) { // what follows may be intact
		v.wrong("%s: after %d entries: %v", f.Name, n, err)
		var more uint64
		more, err = each(r, check)
		n += more
	}
	if err != nil {
		v.wrong("%s: after %d entries: %v", f.Name, n, err)
	}
	if older > 0 {
		v.wrong("%s: %d entries of an earlier phase are not there", f.Name, older)
	}
	for _, c := range f.Sessions {
		if s := sessions[c.ID]; s.next <= s.Acked {
			v.wrong("%s: %v was acknowledged and is not there", f.Name, markOf(s.ID, s.next))
		}
	}
}

// places verifies a log whose places are reused. read appends what a place holds.
func (v *verifier) places(f *fileClaim, read func(place int, to []byte) ([]byte, error)) {
	var buf []byte
	for _, c := range f.Places {
		p, err := read(c.Place, buf[:0])
		if err != nil {
			v.wrong("%s: place %d: %v", f.Name, c.Place, err)
			p = nil
		}
		buf = p
		if c.Acked != 0 {
			v.proof.Acknowledged++
		}
		m, ok := v.read(p)
		if len(p) > 0 && ok {
			v.proof.Recovered++
		}
		switch {
		case err != nil, c.Untouched && !ok:
		case c.Untouched:
			v.wrong("%s: place %d holds %v, which was never issued", f.Name, c.Place, m)
		case len(p) == 0 && (c.Acked == 0 || c.Erases), len(p) > 0 && ok && m == c.Issued && m != c.Acked:
			if c.Acked != 0 {
				v.proof.Verified++ // the operation that replaces it had begun
			}
		case len(p) > 0 && ok && m == c.Acked:
			v.proof.Verified++
		case len(p) == 0:
			v.wrong("%s: place %d is empty, where %v was acknowledged", f.Name, c.Place, c.Acked)
		case !ok:
			v.wrong("%s: place %d holds what no session wrote in this phase, where %v was acknowledged", f.Name, c.Place, c.Acked)
		default:
			v.wrong("%s: place %d holds %v, where %v was acknowledged", f.Name, c.Place, m, c.Acked)
		}
	}
}
