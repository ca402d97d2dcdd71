package keyset

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/loadgen/loadgen/internal/fields"
)

// keys returns those of a set in its order.
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
		{Source{CSV, "id"}, "name,id\n\"a, b\",user:1\n,\"user:2\"\n,x\n"},
		{Source{CSV, "2"}, "a,user:1\nb,user:2\nc,x\n"},
		{Source{JSON, "id"}, `{"id":"user:1"}` + "\n" + `{"name":1,"id":"user\u003a2"}` + "\n" + `{"id":"x"}`},
	} {
		s, digest, err := Read(strings.NewReader(c.text), c.from, 0, 0)
		require.NoError(t, err)
		require.Equal(t, want, keys(s))
		sum := sha256.Sum256([]byte(c.text))
		require.Equal(t, hex.EncodeToString(sum[:]), digest)
		f, err := Check(strings.NewReader(c.text), c.from)
		require.NoError(t, err)
		require.Equal(t, Facts{SHA256: digest, Keys: 3, Bytes: 13 + 3*each}, f)

		again, _, err := Read(strings.NewReader(c.text), c.from, f.Keys, f.Bytes)
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
		{Source{CSV, "id"}, "id\n", "1:1: no line has a key"},
		{Source{Form: Lines}, "a\n\nb", "2:1: a key of 0 bytes"},
		{Source{Form: Lines}, "a\nb c\n", "2:1: a key with the byte 0x20"},
		{Source{Form: Lines}, "a\nb\na\n", `3:1: "a" is key 1 of the file and again key 3: write each key once`},
		{Source{CSV, "id"}, "x,id\n1,a\n2,\"a\"\n", `3:3: id: "a" is key 1 of the file and again key 2`},
		{Source{CSV, "key"}, "a\nb\n", `1:1: no column "key"`},
		{Source{CSV, "3"}, "a,b\n", "1:1: 2 fields, and the key would be number 3"},
		{Source{JSON, "id"}, `{"key":"a"}`, `1:1: no field "id"`},
		{Source{"xml", ""}, "", `keys in the form "xml"`},
	} {
		_, err := Check(strings.NewReader(c.text), c.from)
		require.ErrorContains(t, err, c.want)
	}
}

// What a file's keys take is bounded.
func TestBound(t *testing.T) {
	s := &Set{}
	_, err := s.read(strings.NewReader("a\nbcd\ne\n"), Source{Form: Lines}, 12, func(*fields.Reader) error { return nil })
	require.ErrorContains(t, err, "3:1: more than the 256 MiB that keys may take")
}

// Keys that are there twice are found among many, wherever they stand.
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
