package rowfile

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
)

var names = []string{"key", "size"}

// read returns the fields of all records, each with its line.
func read(r *Reader) (all []string, err error) {
	for {
		if err := r.Next(); err == io.EOF {
			return all, nil
		} else if err != nil {
			return all, err
		}
		text := fmt.Sprint(r.Line())
		for i := range r.names {
			if b, there := r.Get(i); there {
				text += fmt.Sprintf(" %s=%q", r.names[i], b)
			}
		}
		all = append(all, text)
	}
}

func TestFields(t *testing.T) {
	for _, c := range []struct {
		name string
		kind Kind
		text string
		want []string
	}{
		{"named columns", CSV, "size,x, KEY\r\n1,2,a\r\n\r\n3,4, b \n", []string{`2 key="a" size="1"`, `4 key="b" size="3"`}},
		{"a column that may be missing", CSV, "key\na\n", []string{`2 key="a"`}},
		{"quotes", CSV, "key,size\n\"a,b\",\"say \"\"so\"\"\"\n\"\",\n", []string{`2 key="a,b" size="say \"so\""`, `3 key="" size=""`}},
		{"space before quotes", CSV, "x, \"key\"\n1,  \"a, b\"\n", []string{`2 key="a, b"`}},
		{"lines between quotes", CSV, "key,size\n\"a\r\n\n\"\"b\",1\nc,2", []string{`2 key="a\n\n\"b" size="1"`, `5 key="c" size="2"`}},
		{"objects", JSON, `{"key":"a","size":12}` + "\n\n" + ` { "x":{"key":[1,"}"]}, "size" : null ,"key" : -1.5e3}` + "\r\n", []string{`1 key="a" size="12"`, `3 key="-1.5e3"`}},
		{"escapes", JSON, `{"k\u0065y":"\"\\\/\b\f\n\r\t\u00e4\ud83d\ude00\ud83d!\ude00\ud83dA","key2":"\""}`, []string{`1 key="\"\\/\b\f\n\r\tä😀�!��A"`}},
		{"a byte order mark", CSV, "\ufeffkey,size\r\na,1\r\n", []string{`2 key="a" size="1"`}},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := read(NewReader(strings.NewReader(c.text), c.kind, names, 1, nil))
			require.NoError(t, err)
			require.Equal(t, c.want, got)
		})
	}
	got, err := read(NewReader(strings.NewReader("a b\r\n\nc"), Lines, []string{"key"}, 1, nil))
	require.NoError(t, err)
	require.Equal(t, []string{`1 key="a b"`, `2 key=""`, `3 key="c"`}, got, "an empty line is one")
	got, err = read(NewReader(strings.NewReader("a,1\nb,2\n"), CSV, names, 1, []int{1, 0}))
	require.NoError(t, err)
	require.Equal(t, []string{`1 key="1" size="a"`, `2 key="2" size="b"`}, got, "no line names the columns")
}

func TestMistakes(t *testing.T) {
	for _, c := range []struct {
		kind       Kind
		text, want string
	}{
		{CSV, "a,size\n", `1:1: no column "key": the first line names the columns, and there has to be key`},
		{CSV, "size,key\n1\n", "2:1: 1 fields, and the key would be number 2"},
		{CSV, "key\nab\"c\n", "2:3: a quote within a field"},
		{CSV, "key,size\na,\"b\"c\n", "2:5: text after a closing quote"},
		{CSV, "key,size\na,\"b\n\nc\n", "2:3: a quote that is not closed"},
		{CSV, "key,size\n\"a\nb\",c\"\n", "3:5: a quote within a field"},
		{CSV, "key\n" + strings.Repeat("k", 1<<16), "2:1: more than the 65536 bytes"},
		{CSV, "key\n\"" + strings.Repeat("k\n", 1<<16), "2:1: more than the 65536 bytes"},
		{JSON, `{"key":"a"}` + "\n[1]\n", "2:1: no object"},
		{JSON, `{"key":"a",}`, "1:12: no JSON: invalid character '}'"},
		{JSON, `{"key":"a"`, "1:10: no JSON: unexpected end"},
		{JSON, `  {"size":1}`, `1:1: no field "key"`},
		{JSON, `{"key":true}`, "1:8: key: neither text nor a number"},
		{JSON, `{"key":null}`, `1:1: no field "key"`},
		{JSON, `{"key":null,"x":1,"key":"b"}`, `1:25: field "key" is there twice`},
	} {
		_, err := read(NewReader(strings.NewReader(c.text), c.kind, names, 1, nil))
		require.ErrorContains(t, err, c.want, "%.40q", c.text)
		var at *Error
		require.ErrorAs(t, err, &at)
	}
}

// Values may be long, and any JSON.
func TestWiden(t *testing.T) {
	long := strings.Repeat("v", 100_000)
	for _, c := range []struct {
		kind       Kind
		text, want string
	}{
		{Lines, long + "\n", long},
		{CSV, "key\n\"" + long + "\n\"\n", long + "\n"},
		{JSON, `{"key": {"a": [1, "}"]} }`, `{"a": [1, "}"]}`},
		{JSON, `{"key":[]}`, `[]`},
		{JSON, `{"key":true }`, `true`},
		{JSON, `{"key":"a\n"}`, "a\n"},
	} {
		r := NewReader(strings.NewReader(c.text), c.kind, names[:1], 1, nil)
		r.Widen(200_000)
		r.TakeAny()
		require.NoError(t, r.Next(), "%.40q", c.text)
		got, there := r.Get(0)
		require.True(t, there)
		require.Equal(t, c.want, string(got))
	}
	for _, text := range []string{"a\n" + long + long + "v\n", "a\n" + long + long + "v"} {
		r := NewReader(strings.NewReader(text), Lines, names[:1], 1, nil)
		r.Widen(200_000)
		require.NoError(t, r.Next())
		require.ErrorContains(t, r.Next(), "2:1: more than the 200000 bytes")
	}
	r := NewReader(strings.NewReader(`{"key":null}`), JSON, names[:1], 1, nil)
	r.TakeAny()
	require.ErrorContains(t, r.Next(), `1:1: no field "key"`)
}

func TestKeys(t *testing.T) {
	for _, c := range []struct{ key, want string }{
		{"", "2:3: key: a key of 0 bytes, want 1 to 250"},
		{strings.Repeat("k", 251), "2:3: key: a key of 251 bytes"},
		{"a b", "2:3: key: a key with the byte 0x20, want printable ASCII"},
		{"ä", "a key with the byte 0xc3"},
		{strings.Repeat("k", 250), ""},
	} {
		r := NewReader(strings.NewReader("x,key\n1,"+c.key), CSV, []string{"key"}, 1, nil)
		require.NoError(t, r.Next())
		got, err := r.Key(0)
		if c.want == "" {
			require.NoError(t, err)
			require.Equal(t, c.key, string(got))
			continue
		}
		require.ErrorContains(t, err, c.want)
	}
}

// Records are those that encoding/csv reads, except for space behind unquoted fields.
func FuzzCSV(f *testing.F) {
	for _, s := range []string{"a,b\n", "\"a\nb\",c\r\n\n\"\"\"\"\n", "a\"b", "\"a\"b", "\"a", "\"\r\n\"\r", ",\n \"a\"\n", "a, \"b\"\n"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		want := csv.NewReader(strings.NewReader(text))
		want.FieldsPerRecord, want.TrimLeadingSpace = -1, true
		r := NewReader(strings.NewReader(text), CSV, []string{"first"}, 0, []int{0})
		for {
			record, wrong := want.Read()
			err := r.Next()
			require.Equal(t, wrong == nil, err == nil, "%v, and here %v", wrong, err)
			if wrong != nil {
				require.Equal(t, errors.Is(wrong, io.EOF), errors.Is(err, io.EOF))
				return
			}
			line, _ := want.FieldPos(0)
			require.EqualValues(t, line, r.Line())
			require.Len(t, r.all, len(record))
			for i, field := range record {
				require.Equal(t, strings.TrimSpace(field), string(bytes.TrimSpace(r.all[i].text)))
			}
		}
	})
}

// Fields are those that encoding/json reads.
func FuzzJSON(f *testing.F) {
	for _, s := range []string{`{"key":"a"}`, `{"key":1,"x":[{"key":"b"}]}`, `{"k\u0065y":"\ud83d\ude00\n\ud83d"}`, `{"key":null}`, `[]`, `{"key":"a","key":2}`} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if strings.ContainsAny(text, "\r\n") || !utf8.ValidString(text) || text == "" {
			return
		}
		r := NewReader(strings.NewReader(text), JSON, []string{"key"}, 0, nil)
		err := r.Next()
		var want map[string]json.RawMessage
		if wrong := json.Unmarshal([]byte(text), &want); wrong != nil || want == nil {
			require.Error(t, err)
			return
		}
		if err != nil {
			require.Regexp(t, "neither text nor a number|there twice", err.Error())
			return
		}
		got, there := r.Get(0)
		switch raw := want["key"]; {
		case len(raw) == 0 || raw[0] == 'n':
			require.False(t, there)
		case raw[0] == '"':
			var s string
			require.NoError(t, json.Unmarshal(raw, &s))
			require.Equal(t, s, string(got))
		default:
			require.Equal(t, string(raw), string(got))
		}
	})
}

// Nothing is allocated per record. Under the race detector encoding/json's pool drops one scanner in four, which is less than one per op if
// the record is nested no more deeply than here.
func TestNextAllocatesNothing(t *testing.T) {
	for kind, line := range map[Kind]string{
		Lines: "user:1", CSV: `"user,1","2` + "\n" + `3"`, JSON: `{"x":[1,2],"key":"us\u0065r\/1","size":12}`,
	} {
		columns := []int{0, 1}
		listed := names
		if kind == Lines {
			listed = names[:1]
		}
		r := NewReader(strings.NewReader(strings.Repeat(line+"\n", 3000)), kind, listed, 1, columns)
		require.NoError(t, r.Next())
		var err error
		require.Zero(t, testing.AllocsPerRun(1000, func() { err = r.Next() }), line)
		require.NoError(t, err)
	}
}
