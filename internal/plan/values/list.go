package values

import (
	"encoding/binary"
	"fmt"
	"math/bits"
	"strconv"
	"strings"
	"unicode/utf8"
)

// texts are the texts that a list chooses from.
type texts struct {
	n                   uint64
	longest, longestRaw int // bytes of the longest, as JSON and as plain text
	json, plain         func(dst []byte, i uint64) []byte
}

// list returns the kind of one of the arguments or, with a single argument n, of one of n words; or of several of these, if the arguments begin with
// their number.
func list(name string, args []string) (kind, error) {
	if len(args) == 0 {
		return kind{}, fmt.Errorf("a list of nothing; write how many texts it has, or the texts themselves, as in list(draft, live)")
	}
	several := uint64(0)
	if many, first, found := strings.Cut(args[0], " of "); found {
		if n, err := strconv.ParseUint(many, 10, 32); err == nil {
			several, args = n, append([]string{strings.TrimSpace(first)}, args[1:]...)
			if n < 1 {
				return kind{}, fmt.Errorf("a list of 0 of its texts; write how many to choose, as in list(2 of 9)")
			}
		}
	}
	t, err := choices(name, args)
	switch {
	case err != nil:
		return kind{}, err
	case several == 0:
		return t.one(), nil
	case several > t.n || t.n > maxSeveral:
		return kind{}, fmt.Errorf("a list of %d of %d texts; write how many to choose of up to %d texts, as in list(2 of 9)", several, t.n, maxSeveral)
	}
	return t.several(several), nil
}

// choices returns the texts that a list's arguments name.
func choices(name string, args []string) (texts, error) {
	if len(args) == 1 {
		if n, err := strconv.ParseUint(args[0], 10, 32); err == nil {
			if n < 1 || n > maxList {
				return texts{}, fmt.Errorf("a list of %d; write a number from 1 to %d, or the texts themselves", n, maxList)
			}
			return madeTexts(name, n), nil
		}
	}
	t := texts{n: uint64(len(args))}
	all := make([]string, len(args))
	for i, arg := range args {
		if arg == "" || len(arg) > maxText || !utf8.ValidString(arg) {
			return texts{}, fmt.Errorf("the text %.40q in a list; write 1 to %d bytes of UTF-8 without commas and brackets", arg, maxText)
		}
		all[i] = quoted(arg)
		t.longest, t.longestRaw = max(t.longest, len(all[i])), max(t.longestRaw, len(arg))
	}
	t.json = func(dst []byte, i uint64) []byte { return append(dst, all[i]...) }
	t.plain = func(dst []byte, i uint64) []byte { return append(dst, args[i]...) }
	return t, nil
}

// madeTexts returns n texts, each a word and its number. They are generated, not stored.
func madeTexts(name string, n uint64) texts {
	seed := random(len(name))
	for _, c := range []byte(name) {
		seed = random(seed.word()) ^ random(c)
	}
	plain := func(dst []byte, i uint64) []byte {
		pick := seed + random(i)
		dst = append(dst, pick.latin()...)
		dst = append(dst, '-')
		return strconv.AppendUint(dst, i+1, 10)
	}
	bound := len("-") + longest + len(strconv.FormatUint(n, 10))
	return texts{
		n: n, longest: bound + len(`""`), longestRaw: bound, plain: plain,
		json: func(dst []byte, i uint64) []byte { return append(plain(append(dst, '"'), i), '"') },
	}
}

// packed appends a text with its length.
func (t *texts) packed(dst []byte, i uint64) []byte {
	at := len(dst)
	return counted(t.plain(dst, i), at)
}

// numberBytes is the length of the largest number of a text.
func (t *texts) numberBytes() int { return (max(1, bits.Len64(t.n-1)) + 6) / 7 }

// one returns the kind of a single text.
func (t texts) one() kind {
	drawn := func(write func(dst []byte, i uint64) []byte) writer {
		return func(dst []byte, r random) []byte { return write(dst, r.below(t.n)) }
	}
	return kind{
		json:       form{t.longest, drawn(t.json)},
		packed:     form{binary.MaxVarintLen32 + t.longestRaw, drawn(t.packed)},
		dictionary: form{t.numberBytes(), drawn(binary.AppendUvarint)},
		plain:      drawn(t.plain),
	}
}

// several returns the kind of a list of k different texts.
func (t texts) several(k uint64) kind {
	n := int(k)
	drawn := func(write func(dst []byte, i uint64) []byte) writer {
		return func(dst []byte, r random) []byte {
			for i, left := uint64(0), k; left > 0; i++ { // selection sampling: Knuth, The Art of Computer Programming 2, section 3.4.2, algorithm S
				if r.below(t.n-i) < left {
					dst = write(dst, i)
					left--
				}
			}
			return dst
		}
	}
	elements := drawn(func(dst []byte, i uint64) []byte { return append(t.json(dst, i), ',') })
	return kind{
		json: form{len("[]") + n*(t.longest+len(",")), func(dst []byte, r random) []byte {
			dst = elements(append(dst, '['), r)
			dst[len(dst)-1] = ']'
			return dst
		}},
		packed:     form{n * (binary.MaxVarintLen32 + t.longestRaw), drawn(t.packed)},
		dictionary: form{n * t.numberBytes(), drawn(binary.AppendUvarint)},
	}
}
