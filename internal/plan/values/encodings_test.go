package values

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/loadgen/loadgen/internal/plan/compress"
)

// node is the record of a benchmark of caches of documents: one property of each type.
var node = map[string]string{
	"date": "date", "datetime": "datetime", "double": "double", "float": "float", "int": "int", "long": "long",
	"noderef": "uuid(workspace://SpacesStore/%s)", "qname": "qname", "text": "list(9)",
}

// reader decodes records by what the package's documentation says of the encodings, for JSON's forms of the types in [every].
type reader struct {
	t          require.TestingT
	b          []byte
	dictionary bool
	words      map[string]string // what a number stands for in a field, once it is known
}

func (r *reader) take(n int) []byte {
	require.GreaterOrEqual(r.t, len(r.b), n)
	b := r.b[:n]
	r.b = r.b[n:]
	return b
}

func (r *reader) varint() uint64 {
	x, n := binary.Uvarint(r.b)
	require.Positive(r.t, n)
	r.b = r.b[n:]
	return x
}

func (r *reader) text() string { return string(r.take(int(r.varint()))) }

func (r *reader) uuid() string {
	h := hex.EncodeToString(r.take(16))
	return strings.Join([]string{h[:8], h[8:12], h[12:16], h[16:20], h[20:]}, "-")
}

// numbered returns what a number of a field stands for: always the same, and never the same as another number.
func (r *reader) numbered(field string, number uint64, said string) string {
	key := field + "\x00" + strconv.FormatUint(number, 10)
	if _, known := r.words[key]; !known {
		for other, word := range r.words {
			require.False(r.t, strings.HasPrefix(other, field+"\x00") && word == said, "%s: %s has two numbers", field, said)
		}
		r.words[key] = said
	}
	return r.words[key]
}

// listed returns an element of a list.
func (r *reader) listed(field string, said any) any {
	if !r.dictionary {
		return r.text()
	}
	return r.numbered(field, r.varint(), said.(string))
}

// value decodes one value of a type.
func (r *reader) value(field, kind string, said any) any {
	name, args, _ := strings.Cut(strings.TrimSuffix(kind, ")"), "(")
	switch name {
	case "int":
		return json.Number(strconv.Itoa(int(int32(binary.LittleEndian.Uint32(r.take(4))))))
	case "long":
		return json.Number(strconv.FormatInt(int64(binary.LittleEndian.Uint64(r.take(8))), 10))
	case "float":
		return json.Number(strconv.FormatFloat(float64(math.Float32frombits(binary.LittleEndian.Uint32(r.take(4)))), 'g', -1, 32))
	case "double":
		return json.Number(strconv.FormatFloat(math.Float64frombits(binary.LittleEndian.Uint64(r.take(8))), 'g', -1, 64))
	case "date":
		return time.Unix(24*60*60*int64(binary.LittleEndian.Uint32(r.take(4))), 0).UTC().Format(time.DateOnly)
	case "datetime":
		return time.UnixMilli(int64(binary.LittleEndian.Uint64(r.take(8)))).UTC().Format("2006-01-02T15:04:05.000Z")
	case "uuid":
		before, after, within := strings.Cut(args, "%s")
		if within && !r.dictionary {
			before = r.text()
		}
		id := r.uuid()
		if within && !r.dictionary {
			after = r.text()
		}
		return before + id + after
	case "qname":
		if !r.dictionary {
			return r.text()
		}
		namespace, _, _ := strings.Cut(said.(string), "}")
		return r.numbered(field, uint64(r.take(1)[0]), namespace) + "}" + r.text()
	case "lorem":
		return r.text()
	case "list":
		if all, several := said.([]any); several {
			var got []any
			for _, one := range all {
				got = append(got, r.listed(field, one))
			}
			return got
		}
		return r.listed(field, said)
	case "grow":
		got := []any{}
		for i := range r.varint() {
			got = append(got, r.value(field, args+")", said.([]any)[i]))
		}
		return got
	}
	require.Fail(r.t, kind)
	return nil
}

// TestEncodingsHoldTheSameRecord decodes records of every type in every encoding.
func TestEncodingsHoldTheSameRecord(t *testing.T) {
	kinds := maps.Clone(every)
	kinds["s grown"], kinds["t grown"] = "grow(uuid)", "grow(list(a, b, c))"
	plain, err := New(kinds, JSON, "")
	require.NoError(t, err)
	names := slices.Sorted(maps.Keys(kinds))
	for _, encoding := range []string{JSON, Packed, Dictionary} {
		words := map[string]string{}
		r, err := New(kinds, encoding, "")
		require.NoError(t, err)
		rapid.Check(t, func(t *rapid.T) {
			n := rapid.Uint32Range(0, 300).Draw(t, "elements")
			seed := Grown(rapid.Uint64().Draw(t, "seed"), n)
			b := r.Append([]byte("before"), seed)[len("before"):]
			require.LessOrEqual(t, int64(len(b)), r.Bound(int64(n)))
			said := plain.Append(nil, seed)
			if encoding == JSON {
				require.Equal(t, string(said), string(b))
				return
			}
			want := map[string]any{}
			d := json.NewDecoder(bytes.NewReader(said))
			d.UseNumber()
			require.NoError(t, d.Decode(&want))
			got := map[string]any{}
			in := &reader{t: t, b: b, dictionary: encoding == Dictionary, words: words}
			for _, name := range names {
				got[name] = in.value(name, kinds[name], want[name])
			}
			require.Empty(t, in.b)
			require.Equal(t, want, got)
		})
	}
}

// TestEncodingsInOrderOfSize: each leaves out something that the one before has.
func TestEncodingsInOrderOfSize(t *testing.T) {
	var sizes []int
	for _, encoding := range []string{JSON, Packed, Dictionary} {
		r, err := New(node, encoding, "")
		require.NoError(t, err)
		total := 0
		for seed := range uint64(1000) {
			total += len(r.Append(nil, seed))
		}
		sizes = append(sizes, total/1000)
	}
	require.Greater(t, sizes[0], sizes[1]*3/2)
	require.Greater(t, sizes[1], sizes[2]*3/2)
	t.Log("mean bytes as JSON, packed, by dictionary:", sizes)
}

// TestEncodingAllocatesNothing checks what event loops rely on.
func TestEncodingAllocatesNothing(t *testing.T) {
	for _, encoding := range []string{Packed, Dictionary} {
		r, err := New(every, encoding, "")
		require.NoError(t, err)
		dst := make([]byte, 0, r.Bound(0)+16) // 16: lengths are inserted
		seed := uint64(0)
		require.Zero(t, testing.AllocsPerRun(100, func() { dst = r.Append(dst[:0], seed); seed++ }), encoding)
	}
}

func TestEncodingsAndCompressionsByName(t *testing.T) {
	_, err := New(node, "protobuf", "")
	require.ErrorContains(t, err, `encoding "protobuf"; write "json", "packed" or "dictionary"`)
	_, err = New(node, "", "lz4")
	require.ErrorContains(t, err, `compression "lz4"`)
	for _, name := range []string{"gzip", "zstd"} { // what becomes of a record depends on nothing but its seed
		r, err := New(node, "", name)
		require.NoError(t, err)
		plain, err := New(node, "", "")
		require.NoError(t, err)
		c, err := compress.New(name)
		require.NoError(t, err)
		require.Equal(t, append([]byte("before"), c.Append(nil, plain.Append(nil, 7))...), r.Append([]byte("before"), 7))
	}
}
