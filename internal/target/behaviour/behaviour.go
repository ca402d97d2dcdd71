// Package behaviour checks what loadgen relies on in any store: what is a miss, which bytes come back, and in which order. Package drivertest makes
// these checks of drivers, in tests; package adapter makes them of servers, for users.
package behaviour

import (
	"bytes"
	"fmt"
	"slices"
	"strconv"

	"github.com/loadgen/loadgen/pkg/driver"
)

// Rules say what a store may do otherwise. The zero value allows nothing.
type Rules struct {
	MaxKey       int  // the longest key, in bytes; 0 for no limit below 512
	MaxValue     int  // the longest value, in bytes; 0 for no limit below 1 MiB
	TextKeys     bool // keys must be printable and hold no space
	UTF8Keys     bool // keys must be UTF-8
	BlindDeletes bool // a delete is OK whether the key was there or not
	Unordered    bool // requests that are under way together are carried out in any order
}

// Do carries out requests in order, and sends all of them before it waits for the first reply. The replies stay valid.
type Do func(reqs ...driver.Request) ([]driver.Reply, error)

// Check is one check. It deletes the keys that it has put, unless it fails.
type Check struct {
	Name   string
	Remedy string // what an adapter should do instead
	Make   func(Do) error
}

// Indexes of checks in what Checks returns.
const (
	Delete = 3
	Order  = 5
)

// Checks returns the checks of a store. key returns a key that nobody else uses, which ends in name.
func Checks(r Rules, key func(name string) []byte) []Check {
	s := &store{r, key}
	return []Check{
		{"a key that is not there", `answer "$-1" to GET, and ":0" to DEL`, s.missing},
		{"values of all sizes and bytes", "store a value as the bytes that came, as many as its length says; an empty one is a value, too", s.values},
		{"an overwrite counts", "let SET replace what is there: an upsert, not an insert", s.overwrite},
		{"a delete counts", `let DEL answer ":1" if the key was there, and remove it`, s.delete},
		{"keys are bytes", "take a key as the bytes that came: not as text, not in another case, not cut", s.keys},
		{"replies keep the order of requests", "answer requests of a connection in the order in which they came", s.order},
	}
}

// store is what the checks are made of.
type store struct {
	Rules
	key func(name string) []byte
}

// step is a request, and what its reply must be.
type step struct {
	req   driver.Request
	want  driver.Outcome
	value *driver.Value // of a get that is OK
}

// get expects a value, or a miss if it is nil.
func get(key []byte, v *driver.Value) step {
	s := step{req: driver.Request{Verb: driver.Get, Key: key}, value: v}
	if v == nil {
		s.want = driver.Miss
	}
	return s
}

func put(key []byte, v *driver.Value) step {
	return step{req: driver.Request{Verb: driver.Put, Key: key, Value: v}}
}

func del(key []byte) step { return step{req: driver.Request{Verb: driver.Delete, Key: key}} }

// gone deletes a key that is not there.
func (s *store) gone(key []byte) step {
	d := del(key)
	if !s.BlindDeletes {
		d.want = driver.Miss
	}
	return d
}

// inTurn carries out each step before it begins the next.
func (do Do) inTurn(steps ...step) error {
	for i := range steps {
		if err := do.together(steps[i : i+1]); err != nil {
			return err
		}
	}
	return nil
}

// together carries out lists of steps one after the other, the steps of a list together.
func (do Do) together(lists ...[]step) error {
	for _, steps := range lists {
		reqs := make([]driver.Request, len(steps))
		for i := range steps {
			reqs[i] = steps[i].req
		}
		replies, err := do(reqs...)
		if err != nil {
			return err
		}
		for i, r := range replies {
			req, v := &steps[i].req, steps[i].value
			switch {
			case r.Outcome != steps[i].want:
				return fmt.Errorf("%s of %.60q is %s %.60q, not %s", req.Verb, req.Key, r.Outcome, r.Message, steps[i].want)
			case v != nil && !bytes.Equal(r.Value, v.AppendTo(nil)):
				return fmt.Errorf("get of %.60q returns %d bytes %.40q, not the %d that were put there", req.Key, len(r.Value), r.Value, v.Size)
			case v == nil && req.Verb == driver.Get && len(r.Value) > 0:
				return fmt.Errorf("get of %.60q is a miss with a value of %d bytes", req.Key, len(r.Value))
			}
		}
	}
	return nil
}

func (s *store) missing(do Do) error {
	return do.inTurn(get(s.key("missing"), nil), s.gone(s.key("missing")))
}

func (s *store) values(do Do) error {
	for _, size := range []int{0, 1, driver.HeaderSize, 200, 64 << 10, 1 << 20} {
		if s.MaxValue > 0 && size > s.MaxValue {
			continue
		}
		k, v := s.key("value"+strconv.Itoa(size)), Binary(size)
		if err := do.inTurn(put(k, v), get(k, v), del(k)); err != nil {
			return err
		}
	}
	return nil
}

// Binary returns a value whose header, from HeaderSize on, imitates the ends and beginnings of replies.
func Binary(size int) *driver.Value {
	if size < driver.HeaderSize {
		return &driver.Value{Size: size, Seed: 7}
	}
	const crlf, ok, nulEnd = 0x2B0A_0D00, 0x0A0D_4B4F, 0x0A0D_444E_450A_0DFF // "\0\r\n+OK\r\n", "\xff\r\nEND\r\n"
	return &driver.Value{Size: size, Seed: 7, Checked: true, Writer: crlf, Key: ok, Version: nulEnd}
}

func (s *store) overwrite(do Do) error {
	k := s.key("overwritten")
	var steps []step
	for _, size := range []int{200, 3, 1000, 0, 24} {
		v := &driver.Value{Size: size, Seed: uint64(size)}
		steps = append(steps, put(k, v), get(k, v))
	}
	return do.inTurn(append(steps, del(k))...)
}

func (s *store) delete(do Do) error {
	k, v := s.key("deleted"), &driver.Value{Size: 5}
	return do.inTurn(put(k, v), get(k, v), del(k), get(k, nil), s.gone(k))
}

// keys puts keys that differ only in what a careless store changes, each with its own value, before it gets any.
func (s *store) keys(do Do) error {
	longest := 512
	if s.MaxKey > 0 {
		longest = min(longest, s.MaxKey)
	}
	long := bytes.Repeat([]byte("k"), longest-len(s.key("1")))
	names := []string{"plain", "PLAIN", "ünïcode", string(long) + "1", string(long) + "2"}
	if !s.TextKeys {
		names = append(names, "a space", "a\r\nb", "nul\x00nul", "nul", "$-1\r\n")
	}
	if !s.TextKeys && !s.UTF8Keys {
		names = append(names, "\xff", "\xfe")
	}
	var puts, gets, dels []step
	for i, name := range names {
		k, v := s.key(name), &driver.Value{Size: 10 + i, Seed: uint64(i)}
		puts, gets, dels = append(puts, put(k, v)), append(gets, get(k, v)), append(dels, del(k))
	}
	return do.together(puts, gets, dels)
}

// order has many requests under way, and tells their replies apart by the values' sizes.
func (s *store) order(do Do) error {
	const n = 64
	var turns [5][]step // each key is once in each
	for i := range n {
		k, v := s.key("order"+strconv.Itoa(i)), &driver.Value{Size: 8 * i, Seed: uint64(i)}
		turns[0], turns[1] = append(turns[0], put(k, v)), append(turns[1], get(k, v))
		turns[2], turns[3], turns[4] = append(turns[2], get(k, v)), append(turns[3], del(k)), append(turns[4], get(k, nil))
	}
	for _, turn := range turns[2:] {
		slices.Reverse(turn)
	}
	if s.Unordered {
		return do.together(turns[:]...)
	}
	var all []step
	for _, turns := range [][][]step{turns[:2], turns[2:]} {
		for i := range n {
			for _, turn := range turns {
				all = append(all, turn[i])
			}
		}
	}
	return do.together(all)
}
