package values

import (
	"encoding/json"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// every has a field of each type.
var every = map[string]string{
	"a int": "int", "b small": "int(-3, 3)", "c long": "long", "d big": "long(9223372036854775806, 9223372036854775807)", "e float": "float",
	"f double": "double", "g date": "date", "h datetime": "datetime", "i made": "list(9)", "j said": "list(draft, live, <a \"b\">)",
	"k uuid": "uuid", "l qname": "qname", "p node": `uuid("a,b"/%s)`, "q some": "list(2 of 5)", "r both": "list(2 of cm:auditable, \"bm\")", "m lorem": "lorem", "n text": "lorem(3)", "ö": "int(7, 7)",
}

// TestTextsOfAMegabyte: documents are that long.
func TestTextsOfAMegabyte(t *testing.T) {
	r, err := New(map[string]string{"text": "lorem(200000)"}, "", "")
	require.NoError(t, err)
	require.Greater(t, len(r.Append(nil, 1)), 1_000_000)
}

func TestRecordsAreWhatTheirFieldsSay(t *testing.T) {
	r, err := New(every, "", "")
	require.NoError(t, err)
	said := map[string]int{}
	made := map[string]int{}
	small := map[string]int{}
	some := map[string]int{}
	for seed := range uint64(20_000) {
		b := r.Append([]byte("before"), seed)[len("before"):]
		require.LessOrEqual(t, len(b), int(r.Bound(0)))
		var v struct {
			Int      int32     `json:"a int"`
			Small    int       `json:"b small"`
			Long     int64     `json:"c long"`
			Big      int64     `json:"d big"`
			Float    float32   `json:"e float"`
			Double   float64   `json:"f double"`
			Date     string    `json:"g date"`
			Datetime time.Time `json:"h datetime"`
			Made     string    `json:"i made"`
			Said     string    `json:"j said"`
			UUID     string    `json:"k uuid"`
			Qname    string    `json:"l qname"`
			Lorem    string    `json:"m lorem"`
			Text     string    `json:"n text"`
			Node     string    `json:"p node"`
			Some     []string  `json:"q some"`
			Both     []string  `json:"r both"`
			Seven    int       `json:"ö"`
		}
		d := json.NewDecoder(strings.NewReader(string(b)))
		d.DisallowUnknownFields()
		require.NoError(t, d.Decode(&v), "%s", b)
		require.True(t, v.Small >= -3 && v.Small <= 3)
		require.GreaterOrEqual(t, v.Big, int64(math.MaxInt64-1))
		require.True(t, v.Float >= 0 && v.Float < 1 && v.Double >= 0 && v.Double < 1)
		day, err := time.Parse(time.DateOnly, v.Date)
		require.NoError(t, err)
		for _, at := range []time.Time{day, v.Datetime} {
			require.True(t, at.Year() >= 2010 && at.Year() <= 2025, "%v", at)
		}
		require.Regexp(t, `^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$`, v.UUID)
		require.Regexp(t, `^\{http://loadgen\.example/model/[a-z]+/1\.0\}[a-z]+[A-Z][a-z]*$`, v.Qname)
		require.Len(t, strings.Fields(v.Lorem), 8)
		require.Len(t, strings.Fields(v.Text), 3)
		require.Regexp(t, `^"a,b"/[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$`, v.Node)
		require.Equal(t, []string{"cm:auditable", `"bm"`}, v.Both)
		require.Equal(t, 7, v.Seven)
		some[strings.Join(v.Some, " ")]++
		said[v.Said]++
		made[v.Made]++
		small[string(rune('3'+v.Small))]++
	}
	for cells, n := range map[*map[string]int]int{&said: 3, &made: 9, &small: 7, &some: 10} {
		require.Len(t, *cells, n)
		want := 20_000 / float64(n)
		for text, count := range *cells {
			require.InDelta(t, want, count, 5*math.Sqrt(want), "%s of %v", text, *cells)
		}
	}
	require.Contains(t, said, `<a "b">`)
}

func TestRecordsFollowFromTheSeed(t *testing.T) {
	r, err := New(every, "", "")
	require.NoError(t, err)
	again, err := New(every, "", "")
	require.NoError(t, err)
	require.Equal(t, string(r.Append(nil, 5)), string(again.Append(nil, 5)))
	require.NotEqual(t, string(r.Append(nil, 5)), string(r.Append(nil, 6)))
	dst := make([]byte, 0, r.Bound(0))
	seed := uint64(0)
	require.Zero(t, testing.AllocsPerRun(1000, func() { dst = r.Append(dst[:0], seed); seed++ }))
	one, err := New(map[string]string{"b": "int(1, 1)", "a": "list(x)"}, "", "")
	require.NoError(t, err)
	require.Equal(t, `{"a":"x","b":1}`, string(one.Append(nil, 0)))
	require.Equal(t, len(`{"a":"x","b":1}`), int(one.Bound(0)))
}

// The longest numbers there are fit.
func TestBoundsOfNumbers(t *testing.T) {
	require.Equal(t, len("-2147483648"), must(t, "int").json.bound)
	require.Equal(t, len("-9223372036854775808"), must(t, "long").json.bound)
	r := random(0)
	for _, kind := range []string{"float", "double"} {
		f := must(t, kind)
		longestSeen := 0
		for range 200_000 {
			longestSeen = max(longestSeen, len(f.json.write(nil, random(r.word()))))
		}
		require.LessOrEqual(t, longestSeen, f.json.bound, kind)
	}
}

func must(t *testing.T, text string) field {
	f, err := newField("name", text)
	require.NoError(t, err)
	return f
}

func TestNewSaysWhatIsWrong(t *testing.T) {
	for text, says := range map[string]string{
		"integer": `type "integer"; write "int"`, "int(": `type "int("`, "int)": `type "int)"`, "uuid(4)": "uuid(4); write up to 256 bytes", "uuid(%s%s)": "one %s", "list(0 of 3)": "a list of 0", "list(4 of 3)": "a list of 4 of 3 texts", "list(2 of 1001)": "of up to 1000 texts",
		"int(1)": "the range (1)", "int(2, 1)": "the smaller first", "int(1, x)": "the range (1, x)", "int(0, 4294967296)": "from -2147483648 to 2147483647",
		"list": "a list of nothing", "list(0)": "a list of 0", "list(1000001)": "from 1 to 1000000", "list(a,,b)": `the text "" in a list`,
		"lorem(0)": "lorem(0)", "lorem(x)": "lorem(x)", "lorem(1, 2)": "lorem(1, 2)", "": `type ""`,
	} {
		_, err := New(map[string]string{"f": text}, "", "")
		require.ErrorContains(t, err, `field "f": `, text)
		require.ErrorContains(t, err, says, text)
	}
	_, err := New(nil, "", "")
	require.ErrorContains(t, err, "0 fields")
	_, err = New(map[string]string{"": "int"}, "", "")
	require.ErrorContains(t, err, `a field named ""`)
}

// Every accepted type makes JSON within its bounds.
func FuzzNew(f *testing.F) {
	f.Add("members", "grow(uuid)", uint64(7))
	for name, text := range every {
		f.Add(name, text, uint64(1))
	}
	f.Fuzz(func(t *testing.T, name, text string, seed uint64) {
		elements := uint32(seed % 100)
		for _, encoding := range []string{JSON, Packed, Dictionary} {
			r, err := New(map[string]string{name: text}, encoding, "")
			if err != nil {
				return
			}
			if r.Grows() {
				seed = Grown(seed, elements)
			}
			b := r.Append(nil, seed)
			require.True(t, encoding != JSON || json.Valid(b), "%s", b)
			require.LessOrEqual(t, int64(len(b)), r.Bound(int64(elements)))
		}
	})
}

func BenchmarkAppend(b *testing.B) {
	r, err := New(map[string]string{"id": "uuid", "born": "date", "kind": "list(9)", "visits": "int", "score": "double"}, "", "")
	require.NoError(b, err)
	var dst []byte
	seed := uint64(0)
	b.ReportAllocs()
	for b.Loop() {
		dst = r.Append(dst[:0], seed)
		seed++
	}
}

// TestRecordsThatGrow checks that a record gets one more element with each number, after its previous ones, and that nothing else changes.
func TestRecordsThatGrow(t *testing.T) {
	r, err := New(map[string]string{"members": "grow(uuid)", "sizes": "grow(int(1, 9))", "title": "lorem(4)"}, "", "")
	require.NoError(t, err)
	require.True(t, r.Grows())
	type form struct {
		Members []string
		Sizes   []int
		Title   string
	}
	var last form
	for n := range uint32(200) {
		b := r.Append(nil, Grown(0x1234_5678_9abc_def0, n))
		require.LessOrEqual(t, int64(len(b)), r.Bound(int64(n)))
		var got form
		require.NoError(t, json.Unmarshal(b, &got))
		require.Len(t, got.Members, int(n))
		require.Len(t, got.Sizes, int(n))
		if n > 0 {
			require.Equal(t, last.Title, got.Title)
			require.Equal(t, last.Members, got.Members[:n-1])
			require.NotContains(t, last.Members, got.Members[n-1])
		}
		if last = got; n == 0 {
			last.Members = []string{}
		}
	}
	require.Equal(t, `[]`, string(r.AppendField(nil, Grown(1, 0), "members")))
	require.EqualValues(t, math.MaxInt64, r.Bound(math.MaxInt64))
	for kind, want := range map[string]string{
		"grow()":           `type ""`,
		"grow(uid)":        `type "uid"`,
		"grow(grow(uuid))": "a list that grows in one that does",
		"grow":             `type "grow"`,
	} {
		_, err := New(map[string]string{"a": kind}, "", "")
		require.ErrorContains(t, err, want, kind)
	}
}
