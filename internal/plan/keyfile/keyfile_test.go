package keyfile

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/loadgen/loadgen/internal/plan/rowfile"
)

// keys returns the keys of a set in order.
func keys(s *Set) (all []string) {
	for i := range s.Len() {
		all = append(all, string(s.Append(nil, uint64(i))))
	}
	return all
}

func TestForms(t *testing.T) {
	want := []string{"user:1", "user:2", "x"}
	for _, c := range []struct {
		from Source
		text string
	}{
		{Source{Form: Lines}, "user:1\nuser:2\r\nx"},
		{Source{Form: CSV, Field: "id"}, "name,id\n\"a, b\",user:1\n,\"user:2\"\n,x\n"},
		{Source{Form: CSV, Field: "2"}, "a,user:1\nb,user:2\nc,x\n"},
		{Source{Form: JSON, Field: "id"}, `{"id":"user:1"}` + "\n" + `{"name":1,"id":"user\u003a2"}` + "\n" + `{"id":"x"}`},
	} {
		s, digest, err := Read(strings.NewReader(c.text), c.from, 0, 0)
		require.NoError(t, err)
		require.Equal(t, want, keys(s))
		sum := sha256.Sum256([]byte(c.text))
		require.Equal(t, hex.EncodeToString(sum[:]), digest)
		f, err := Check(strings.NewReader(c.text), c.from)
		require.NoError(t, err)
		require.Equal(t, Facts{SHA256: digest, Count: 3, Bytes: 13 + 3*each, Least: 1, Largest: 6}, f)

		again, _, err := Read(strings.NewReader(c.text), c.from, f.Count, f.Bytes)
		require.NoError(t, err)
		require.Equal(t, want, keys(again))
		require.Equal(t, []int{13, 3}, []int{cap(again.text), cap(again.ends)}, "room for no more")
	}
}

func TestMistakesInKeys(t *testing.T) {
	for _, c := range []struct {
		from       Source
		text, want string
	}{
		{Source{Form: Lines}, "", "1:1: no line has a key"},
		{Source{Form: CSV, Field: "id"}, "id\n", "1:1: no line has a key"},
		{Source{Form: Lines}, "a\n\nb", "2:1: a key of 0 bytes"},
		{Source{Form: Lines}, "a\nb c\n", "2:1: a key with the byte 0x20"},
		{Source{Form: Lines}, "a\nb\na\n", `3:1: "a" is key 1 of the file and again key 3: write each key once`},
		{Source{Form: CSV, Field: "id"}, "x,id\n1,a\n2,\"a\"\n", `3:3: id: "a" is key 1 of the file and again key 2`},
		{Source{Form: CSV, Field: "key"}, "a\nb\n", `1:1: no column "key"`},
		{Source{Form: CSV, Field: "3"}, "a,b\n", "1:1: 2 fields, and the key would be number 3"},
		{Source{Form: JSON, Field: "id"}, `{"id":{"a":1}}`, "1:7: id: neither text nor a number"},
		{Source{Form: JSON, Field: "id"}, `{"key":"a"}`, `1:1: no field "id"`},
		{Source{Form: "xml"}, "", `keys in the form "xml"`},
	} {
		_, err := Check(strings.NewReader(c.text), c.from)
		require.ErrorContains(t, err, c.want)
	}
}

// Values may be any bytes, repeat, and be empty if written explicitly.
func TestValues(t *testing.T) {
	of := func(form, field, encoding string) Source {
		return Source{Form: form, Field: field, Values: true, Encoding: encoding}
	}
	long := strings.Repeat("v", 100_000)
	for _, c := range []struct {
		from Source
		text string
		want []string
	}{
		{of(Lines, "", ""), "a b\r\nä\na b", []string{"a b", "ä", "a b"}},
		{of(Lines, "", ""), long + "\n" + `{"a":1}` + "\n", []string{long, `{"a":1}`}},
		{of(Lines, "", Base64), "AP8K\nYQ==\n", []string{"\x00\xff\n", "a"}},
		{of(CSV, "v", ""), "k,v\na,\"x, \"\"y\"\"\n\"\nb,\n", []string{"x, \"y\"\n", ""}},
		{of(CSV, "2", Base64), "a,AA==\nb,\n", []string{"\x00", ""}},
		{of(JSON, "v", ""), `{"v":{"a":[1]}}` + "\n" + `{"v":"ä\n"}` + "\n" + `{"v":7}`, []string{`{"a":[1]}`, "ä\n", "7"}},
	} {
		s, _, err := Read(strings.NewReader(c.text), c.from, 0, 0)
		require.NoError(t, err)
		require.Equal(t, c.want, keys(s))
		f, err := Check(strings.NewReader(c.text), c.from)
		require.NoError(t, err)
		require.EqualValues(t, len(c.want), f.Count)
		least, largest := len(c.want[0]), 0
		for i, v := range c.want {
			require.Equal(t, len(v), s.Size(uint64(i)))
			least, largest = min(least, len(v)), max(largest, len(v))
		}
		require.Equal(t, []int{least, largest}, []int{f.Least, f.Largest})
	}
	for _, c := range []struct {
		from       Source
		text, want string
	}{
		{of(Lines, "", ""), "", "1:1: no line has a value"},
		{of(CSV, "v", ""), "v\n", "1:1: no line has a value"},
		{of(CSV, "v", ""), "k,w\na,b\n", `1:1: no column "v"`},
		{of(CSV, "3", ""), "k,w\n", "1:1: 2 fields, and the value would be number 3"},
		{of(JSON, "v", ""), `{"v":1}` + "\n" + `{"w":1}`, `2:1: no field "v"`},
		{of(Lines, "", ""), "a\n\nb\n", "2:1: an empty line: delete it, or write the values as CSV"},
		{of(Lines, "", ""), "a\nb\xff\n", `2:1: not UTF-8: write the values in base64, and encoding = "base64" in the plan`},
		{of(Lines, "", ""), "\xff\xfea\x00\n\x00", "1:1: not UTF-8"},
		{of(CSV, "v", Base64), "k,v\na,YQ==\nb,YQ=\n", "3:3: v: no base64 at its byte 4: write A to Z"},
		{of(Lines, "", ""), strings.Repeat("v", maxLine+1), "1:1: more than the 16777216 bytes"},
		{of("xml", "", ""), "", `values in the form "xml"`},
	} {
		_, err := Check(strings.NewReader(c.text), c.from)
		require.ErrorContains(t, err, c.want, "%.40q", c.text)
	}
	_, err := new(Set).read(strings.NewReader("a\nbcd\ne\n"), of(Lines, "", ""), 12, func(*rowfile.Reader) error { return nil })
	require.ErrorContains(t, err, "3:1: more than the 256 MiB that values may take, with 4 bytes for each: write fewer values")
}

// The memory of a file's keys is bounded.
func TestBound(t *testing.T) {
	s := &Set{}
	_, err := s.read(strings.NewReader("a\nbcd\ne\n"), Source{Form: Lines}, 12, func(*rowfile.Reader) error { return nil })
	require.ErrorContains(t, err, "3:1: more than the 256 MiB that keys may take")
}

// A plan's statement of what a file holds is only a hint, since a plan may come from anywhere.
func TestRoomIsMadeForWhatCanBe(t *testing.T) {
	for _, count := range []int64{1, 3, 1 << 26, 1 << 62, 1<<63 - 1} {
		s, _, err := Read(strings.NewReader("a\nb\nc\n"), Source{Form: Lines}, count, 1<<63-1)
		require.NoError(t, err)
		require.Equal(t, 3, s.Len())
	}
}

// Repeated keys are found among many, wherever they are.
func TestTwice(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 20 {
		var b strings.Builder
		n := 1 + random.IntN(5000)
		for i := range n {
			fmt.Fprintf(&b, "key:%d\n", i*7919)
		}
		_, err := Check(strings.NewReader(b.String()), Source{Form: Lines})
		require.NoError(t, err)
		first := random.IntN(n)
		fmt.Fprintf(&b, "key:%d\n", first*7919)
		_, err = Check(strings.NewReader(b.String()), Source{Form: Lines})
		require.ErrorContains(t, err, fmt.Sprintf("is key %d of the file and again key %d:", first+1, n+1))
	}
}
