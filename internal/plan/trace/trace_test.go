package trace

import (
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/loadgen/loadgen/pkg/driver"
)

const published = `0,nz:u:eeW511W3dcH3de3d15ec,26,0,4,get,0
0,nz:u:eeW511W3dcH3de3d15ec,26,117,4,set,86400
1,q,1,0,5,gets,0
1,q,1,3,5,incr,0
3,q,1,0,5,touch,0
3,q,1,0,5,delete,0
`

func read(t *testing.T, text, form string) (all []string) {
	t.Helper()
	r, err := NewReader(strings.NewReader(text), form, true)
	require.NoError(t, err)
	var rec Record
	for {
		ok, err := r.Next(&rec)
		if err == io.EOF {
			return all
		}
		require.NoError(t, err)
		if ok {
			all = append(all, fmt.Sprintf("%d %d %v %s %d %d", rec.Line, rec.At, rec.Verb, rec.Key, rec.Size, rec.TTL))
		}
	}
}

func TestPublishedForm(t *testing.T) {
	require.Equal(t, []string{
		"1 0 get nz:u:eeW511W3dcH3de3d15ec 0 0",
		"2 0 put nz:u:eeW511W3dcH3de3d15ec 117 86400000",
		"3 1000000000 get q 0 0",
		"4 1000000000 put q 3 0",
		"6 3000000000 delete q 0 0",
	}, read(t, published, "cache"))
	f, err := Read(strings.NewReader(published), "cache", true)
	require.NoError(t, err)
	require.EqualValues(t, 5, f.Lines)
	require.EqualValues(t, 3e9, f.Span)
	require.Equal(t, 117, f.Size)
	require.Equal(t, map[string]int64{"get": 1, "set": 1, "gets": 1, "incr": 1, "delete": 1}, f.Ops)
	require.Equal(t, map[string]int64{"touch": 1}, f.LeftOut)
	require.EqualValues(t, 2, f.Verbs[driver.Put])
	require.Equal(t, "0c10a244", f.SHA256[:8])
}

func TestNamedColumns(t *testing.T) {
	require.Equal(t, []string{"2 0 put a 10 1500", "3 250000000 get b 0 0"},
		read(t, "Key, op ,TIME,client,size,ttl\r\na,set,1700000000.5,x,10,1.5\nb,GETS,1700000000.75,y,,\n", "csv"))
	require.Equal(t, []string{"1 0 put a,b 10 1500", "4 250000000 get b 0 0"},
		read(t, `{"key":"a,b","op":"set","time":1700000000.5,"client":{"op":"x"},"size":10,"ttl":"1.5"}`+"\n\n"+
			`{"key":"c","op":"touch","time":1700000000.6}`+"\n"+`{"key":"\u0062","op":"Get","time":1700000000.75,"size":null}`, "json"))
	require.Equal(t, []string{"2 0 put a,b 10 0"}, read(t, "time,op,key,size\n7,\"set\",\"a,b\",\"10\"\n", "csv"), "quotes")
	require.Equal(t, []string{"2 0 put a 0 0"}, read(t, "time,op,key\n7,set,a\n", "csv"), "size and ttl may be missing")
}

func TestMistakesInTraces(t *testing.T) {
	for _, c := range []struct{ form, text, want string }{
		{"cache", "", "1:1: no line of the trace is an op"},
		{"cache", "1,a,1,0,0,touch,0\n", "1:1: no line of the trace is an op"},
		{"cache", "1,a,1,0,0,get,0\n1,a\n", "2:1: 2 fields, and the op would be number 6"},
		{"cache", "1,a,1,0,0,get,0\n0.5,a,1,0,0,get,0\n", "2:1: time: the time goes back"},
		{"cache", "x,a,1,0,0,get,0\n", `1:1: time: "x" is not a number`},
		{"cache", "-1,a,1,0,0,get,0\n", `1:1: time: "-1" is not a number`},
		{"cache", "1.0000000001,a,1,0,0,get,0\n", "up to nine digits after the point"},
		{"cache", "99999999999,a,1,0,0,get,0\n", "is too large"},
		{"cache", "0,a,1,0,0,get,0\n31536001,a,1,0,0,get,0\n", "2:1: time: more than a year"},
		{"cache", "1,,0,0,0,get,0\n", "1:3: key: a key of 0 bytes"},
		{"cache", "1,a b,0,0,0,get,0\n", "1:3: key: a key with the byte 0x20"},
		{"cache", "1," + strings.Repeat("k", 251) + ",0,0,0,get,0\n", "a key of 251 bytes"},
		{"cache", "1,a,1,1.5,0,set,0\n", "1:7: size: want a number of bytes"},
		{"cache", "1,a,1,536870913,0,set,0\n", "1:7: size: want a number of bytes up to 536870912"},
		{"cache", "1,a,1,1,0,set,x\n", `1:15: ttl: "x" is not a number`},
		{"cache", "1,a,1,1,0,set," + strings.Repeat("1", 70000), "1:1: more than the 65536 bytes"},
		{"csv", "time,op,key\n1,get,a\"b\n", "2:8: a quote within a field"},
		{"json", `{"time":1,"op":"get"}`, `1:1: no field "key"`},
		{"json", `{"time":1e9,"op":"get","key":"a"}`, `1:9: time: "1e9" is not a number`},
		{"json", "{\"time\":1,\"op\":\"get\",\"key\":\"a\"}\ntime,op,key\n", "2:2: no JSON: "},
		{"csv", "op,key,time,TIME\n", `1:1: column "time" is there twice`},
		{"csv", "op,b,key\n", `1:1: no column "time": the first line names the columns, and there has to be op, key, time`},
		{"csv", "", "1:1: no line"},
		{"mooncake", chainLine("7", "513", "[0, 462]") + chainLine("6", "1", "[0]"), "2:15: timestamp: the time goes back"},
		{"mooncake", chainLine("7", "513", "[0]"), "1:51: hash_ids: 1 ids, and 513 tokens in blocks of 512 take 2"},
		{"mooncake", chainLine("7", "1.5", "[0]"), "1:51: hash_ids: 1 ids, and 1 tokens"},
		{"mooncake", chainLine("7", "513", "[0, 4294967296]"), "1:51: hash_ids: the id after 1 others is no whole number below 4294967296"},
		{"mooncake", chainLine("7", "513", "[0, -1]"), "1:51: hash_ids: the id after 1 others"},
		{"mooncake", chainLine("7", "513", `["a"]`), "1:51: hash_ids: the id after 0 others"},
		{"mooncake", chainLine("7", "513", "7"), "1:51: hash_ids: want a list of numbers, such as [0, 462]"},
		{"mooncake", chainLine("7", "0", "[]"), "1:49: hash_ids: the id after 0 others"},
		{"mooncake", chainLine("7", "8388609", "["+strings.Repeat("1, ", 16384)+"1]"), "hash_ids: 16385 ids, and a chain has at most 16384"},
		{"mooncake", `{"timestamp": 7, "input_length": 1}`, `1:1: no field "hash_ids"`},
		{"parquet", "", "there are cache, csv, json, requests and mooncake"},
	} {
		_, err := Read(strings.NewReader(c.text), c.form, true)
		require.ErrorContains(t, err, c.want, "%.40q", c.text)
	}
}

func chainLine(at, tokens, ids string) string {
	return fmt.Sprintf(`{"timestamp": %s, "input_length": %s, "hash_ids": %s, "output_length": 1}`+"\n", at, tokens, ids)
}

// Chains of the same time are due at even distances up to the next time, and those of the last time at those before.
func TestChainsAreSpread(t *testing.T) {
	text := ""
	for _, at := range []string{"3000", "3000", "3000", "3300", "3500", "3500"} {
		text += chainLine(at, "513", "[1, 70000]")
	}
	r, err := NewReader(strings.NewReader(text), Mooncake, true)
	require.NoError(t, err)
	r.Spread()
	for range 2 {
		var got []int64
		var rec Record
		for _, err = r.Next(&rec); err == nil; _, err = r.Next(&rec) {
			require.Equal(t, []uint32{1, 70000}, []uint32{ID(rec.Key, 0), ID(rec.Key, 1)})
			got = append(got, rec.At/1e6)
		}
		require.ErrorIs(t, err, io.EOF)
		require.Equal(t, []int64{0, 100, 200, 300, 500, 600}, got)
		require.NoError(t, r.Reset(strings.NewReader(text)))
	}
	is, err := Read(strings.NewReader(text), Mooncake, true)
	require.NoError(t, err)
	is.Chains.at, is.Chains.same = 0, 0
	require.Equal(t, Chains{Keys: 12, Longest: 2, Below: 70001, Together: 3}, is.Chains)
}

// If times do not matter, they may be missing, decrease, or not be numbers. A trace may be read again from its beginning.
func TestWithoutTimes(t *testing.T) {
	for form, text := range map[string]string{
		"cache": "x,a,1,0,1,get,0\n-1,b,1,7,1,set,2\n",
		"csv":   "key,op,size,ttl\na,get,,\nb,set,7,2\n",
		"json":  `{"op":"get","key":"a"}` + "\n" + `{"op":"set","key":"b","size":7,"ttl":2}`,
	} {
		r, err := NewReader(strings.NewReader(text), form, false)
		require.NoError(t, err)
		for range 3 {
			var got []string
			var rec Record
			for _, err = r.Next(&rec); err == nil; _, err = r.Next(&rec) {
				got = append(got, fmt.Sprintf("%d %d %v %s %d %d", rec.Line, rec.At, rec.Verb, rec.Key, rec.Size, rec.TTL))
			}
			require.ErrorIs(t, err, io.EOF)
			line := 1
			if form == "csv" {
				line = 2
			}
			require.Equal(t, []string{fmt.Sprintf("%d 0 get a 0 0", line), fmt.Sprintf("%d 0 put b 7 2000", line+1)}, got, form)
			r.Reset(strings.NewReader(text))
		}
		f, err := Read(strings.NewReader(text), form, false)
		require.NoError(t, err)
		require.EqualValues(t, 2, f.Lines)
		require.Zero(t, f.Span)
	}
	_, err := Read(strings.NewReader("time,key\n1,a\n"), "csv", false)
	require.ErrorContains(t, err, `1:1: no column "op"`)
}

// Whatever the bytes, reading ends, and its results are within bounds.
func FuzzRead(f *testing.F) {
	f.Add([]byte(published), uint8(0))
	f.Add(requests(f), uint8(3))
	f.Add([]byte("time,op,key\n1,get,a\n"), uint8(1))
	f.Add([]byte(`{"time":1,"op":"set","key":"a","size":3}`), uint8(2))
	f.Fuzz(func(t *testing.T, b []byte, which uint8) {
		form := []string{"cache", "csv", "json", Requests}[which%4]
		r, err := NewReader(strings.NewReader(string(b)), form, true)
		if form == Requests && err != nil {
			return
		}
		require.NoError(t, err)
		var rec Record
		last := int64(0)
		for {
			ok, err := r.Next(&rec)
			if err != nil {
				return
			}
			if !ok {
				continue
			}
			require.GreaterOrEqual(t, rec.At, last)
			require.True(t, len(rec.Key) > 0 && (len(rec.Key) <= 250 || form == Requests && len(rec.Key) <= MaxRequest) && rec.Size >= 0 && rec.Size <= maxValue && rec.TTL <= maxTTL)
			last = rec.At
		}
	})
}

func TestNextAllocatesNothing(t *testing.T) {
	r, err := NewReader(strings.NewReader(strings.Repeat("1.5,key,3,10,1,set,60\n", 3000)), "cache", true)
	require.NoError(t, err)
	var rec Record
	require.Zero(t, testing.AllocsPerRun(1000, func() { _, err = r.Next(&rec) }))
	require.NoError(t, err)
}
