package capture

import (
	"bytes"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
	"github.com/stretchr/testify/require"
)

// read returns a recording's requests and its ledger.
func read(t *testing.T, text []byte, o Options) (all []Record, server string, l Ledger) {
	t.Helper()
	r, err := Open(bytes.NewReader(text), o, &l)
	require.NoError(t, err)
	defer r.Close()
	for {
		var rec Record
		err := r.Next(&rec)
		if err == io.EOF {
			break
		}
		require.NoError(t, err)
		all = append(all, rec)
	}
	balances(t, l)
	return all, r.Server, l
}

func balances(t *testing.T, l Ledger) {
	t.Helper()
	sum := l.Ops
	for _, n := range l.LeftOut {
		sum += n
	}
	require.Equal(t, l.Records, sum, "%v", l)
}

func recorded(t *testing.T, name string) []byte {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", name))
	require.NoError(t, err)
	return text
}

// TestLedgersOfRecordings: the ledgers were counted by hand, and MONITOR's by the servers that were recorded.
func TestLedgersOfRecordings(t *testing.T) {
	monitored := func(ops, connection int64) Ledger {
		return Ledger{Records: ops + connection + 6, Ops: ops, LeftOut: map[string]int64{"secret": 3, "connection": connection, "lua": 3}}
	}
	access := Ledger{Records: 5, Ops: 2, LeftOut: map[string]int64{"no valid request line": 3}}
	for _, c := range []struct {
		name, server string
		want         Ledger
	}{
		{"monitor-redis-6.2.txt", "redis", monitored(25, 2)},
		{"monitor-redis-7.0.txt", "redis", monitored(26, 3)},
		{"monitor-valkey-8.1.txt", "redis", monitored(26, 3)},
		{"postgres-15.csv", "postgres", Ledger{Records: 49, Ops: 15, LeftOut: map[string]int64{
			"connection": 6, "duration of a statement told before": 25, "error": 1, "secret": 1, "copy": 1,
		}}},
		{"postgres-15.json", "postgres", Ledger{Records: 22, Ops: 7, LeftOut: map[string]int64{"connection": 3, "duration of a statement told before": 12}}},
		{"nginx-combined.log", "web", access},
		{"nginx.json", "web", access},
	} {
		_, server, l := read(t, recorded(t, c.name), Options{})
		require.Equal(t, c.server, server, c.name)
		l.Commands = nil
		require.Equal(t, c.want, l, c.name)
	}
}

func TestCommandsOfPackets(t *testing.T) {
	all, _, l := read(t, recorded(t, "redis.pcap"), Options{Allow: []string{"CONFIG"}})
	clients := map[string]bool{}
	for _, r := range all {
		clients[r.Client] = true
	}
	require.Equal(t, map[string]int64{ // as the server counted them
		"get": 39, "set": 19, "hgetall": 10, "incr": 7, "smembers": 5, "lrange": 5, "sadd": 4, "zadd": 4, "hset": 3, "zrange": 3, "lpush": 1, "ping": 6,
		"config": 3, "info": 1, "command": 1,
	}, l.Commands)
	require.Len(t, clients, 5)
	require.EqualValues(t, len(all), l.Ops)
}

// said returns a line of MONITOR, of a client.
func said(at int, client, command string) string {
	return fmt.Sprintf("%d.000000 [0 %s] %s\n", at, client, command)
}

func TestMonitorIsReadByteForByte(t *testing.T) {
	all, _, _ := read(t, recorded(t, "monitor-redis-7.0.txt"), Options{})
	require.Equal(t, Record{
		At: 1795824949492071000, Tick: 1000, Client: "127.0.0.1:54546", Database: "0", Name: "SET",
		Request:  []byte("*3\r\n$3\r\nSET\r\n$6\r\nuser:1\r\n$30\r\nbin\x00\x01\xff\xfe\"quote\\back\r\nnew\tline\a\b\r\n"),
		commands: [][]string{{"SET", "user:1", "bin\x00\x01\xff\xfe\"quote\\back\r\nnew\tline\a\b"}},
	}, all[0])
	require.Empty(t, all[1].commands[0][2])
	var block Record
	for _, r := range all {
		if r.Name == "multi" && len(r.commands) == 4 {
			block = r
		}
	}
	require.EqualValues(t, 1795824949492377000, block.At)
	require.Equal(t, [][]string{{"MULTI"}, {"INCR", "n"}, {"LPUSH", "l", "a", "b"}, {"EXEC"}}, block.commands)
}

func TestWhatIsLeftOutOfMonitor(t *testing.T) {
	for _, c := range []struct {
		text string
		ops  int64
		left map[string]int64
	}{
		{said(1, "a", `"GET" "k"`) + `2.000000 [0 a] "SET" "k" "v`, 1, map[string]int64{cut: 1}},
		{said(1, "a", `"GET" "k"`) + "mixed\n" + said(2, "a", `"GET" "\q"`), 1, map[string]int64{strange: 2}},
		{said(1, "a", `"FLUSHALL"`) + said(1, "a", `"KEYS" "*"`), 1, map[string]int64{managing + "FLUSHALL": 1}},
		{said(1, "a", `"FT.SEARCH" "i"`), 0, map[string]int64{"unknown command: --allow FT.SEARCH": 1}},
		{said(1, "a", `"MULTI"`) + said(1, "a", `"GET" "k"`), 0, map[string]int64{"a transaction without EXEC": 2}},
		{said(1, "a", `"MULTI"`) + said(1, "b", `"GET" "k"`) + said(1, "a", `"DISCARD"`), 1, map[string]int64{"a transaction that was discarded": 2}},
		{
			said(1, "a", `"MULTI"`) + said(1, "a", `"CONFIG" "GET" "x"`) + said(1, "a", `"EXEC"`), 0,
			map[string]int64{"a transaction with a request that is left out": 3},
		},
	} {
		_, _, l := read(t, []byte(c.text), Options{Form: Monitor})
		require.Equal(t, c.left, l.LeftOut, c.text)
		require.Equal(t, c.ops, l.Ops, c.text)
	}
	_, _, l := read(t, []byte(said(1, "a", `"FLUSHALL"`)), Options{Allow: []string{"flushall"}})
	require.EqualValues(t, 1, l.Ops)
}

func TestStatements(t *testing.T) {
	all, _, _ := read(t, recorded(t, "postgres-15.csv"), Options{})
	require.Equal(t, "insert into t values (1, 'it''s \"quoted\", comma\nand newline');", all[1].commands[0][0])
	require.Equal(t, []string{"select v from t where id=$1 and v<>$2", "2", "o'brien\nx"}, all[10].commands[0])
	require.Equal(t, []string{"insert into t values ($1,$2)", "7", null}, all[11].commands[0])
	ended, _, _ := read(t, []byte(`{"timestamp":"2026-11-28 00:00:01.500 UTC","session_id":"s","error_severity":"LOG",`+
		`"message":"duration: 250.5 ms  execute <unnamed>: select $1","detail":"Parameters: $1 = '2'"}`), Options{})
	require.EqualValues(t, 249500000, ended[0].At%1e9, "it began 250.5 ms before it ended")
	for sql, why := range map[string]string{
		"select 1; drop table t":              managing + "DROP",
		"/* drop */ select ';drop' -- ; drop": "",
		"select $q$; drop table t $q$":        "",
		"copy t to program 'rm -rf /'":        managing + "COPY",
		"copy t from stdin":                   "copy",
		"alter user u password 'x'":           secret,
		`select E'\''; drop table t`:          managing + "DROP",
		"/* /* */ select */ drop table t":     managing + "DROP",
		"select a$b$; drop table b$b$":        managing + "DROP",
		";;":                                  "an empty statement",
	} {
		require.Equal(t, why, (&Reader{}).judge(&Record{commands: [][]string{{sql}}}), sql)
	}
}

func TestAccessLogs(t *testing.T) {
	all, _, _ := read(t, recorded(t, "nginx.json"), Options{})
	require.Equal(t, Record{
		At: 1795825101956000000, Tick: 1e6, Client: "4", Database: "x", Name: "GET",
		Request: []byte("GET /raw\"quote\\ HTTP/1.1\r\n\r\n"), commands: [][]string{{"GET", `/raw"quote\`}},
	}, all[0])
	all, _, _ = read(t, recorded(t, "nginx-combined.log"), Options{})
	require.Equal(t, "/abs", all[1].commands[0][1])
	require.Equal(t, "other.example", all[1].Database)
	const head = `1.2.3.4 - - [28/Nov/2026:00:18:21 +0000] `
	_, _, l := read(t, []byte(head+`"GET /a?api_key=1 HTTP/1.1" 200 1`+"\n"+head+`"POST /a HTTP/1.1" 200 1`+"\n"+head+`"GET /a?keyword=1 HTTP/1.1" 200 1`), Options{})
	require.Equal(t, map[string]int64{secret: 1, "no body was recorded: POST": 1}, l.LeftOut)
}

func TestCompressedRecordings(t *testing.T) {
	text := recorded(t, "monitor-redis-7.0.txt")
	var zipped, packed bytes.Buffer
	g := gzip.NewWriter(&zipped)
	z, err := zstd.NewWriter(&packed)
	require.NoError(t, err)
	for _, w := range []io.WriteCloser{g, z} {
		_, err := w.Write(text)
		require.NoError(t, err)
		require.NoError(t, w.Close())
	}
	for _, b := range [][]byte{zipped.Bytes(), packed.Bytes()} {
		_, _, l := read(t, b, Options{})
		require.EqualValues(t, 26, l.Ops)
	}
}

func TestRecordingsThatCannotBeOpened(t *testing.T) {
	for _, c := range []struct {
		text string
		o    Options
		want string
	}{
		{"", Options{}, "not recognised: name it by --form"},
		{"a,b,c\n", Options{}, "not recognised"},
		{"x", Options{Form: "aof"}, `form "aof": write monitor`},
		{"x", Options{Form: Packets}, "pcap: "},
		{ng, Options{}, "pcapng: convert it"},
		{"{}", Options{Form: Access, Fields: map[string]string{"verb": "m"}}, "--fields verb=m: write time, method"},
	} {
		_, err := Open(strings.NewReader(c.text), c.o, &Ledger{})
		require.ErrorContains(t, err, c.want)
	}
}

// Whatever the bytes, reading ends, and the ledger balances.
func FuzzOpen(f *testing.F) {
	for _, name := range []string{"monitor-redis-7.0.txt", "redis.pcap", "postgres-15.csv", "postgres-15.json", "nginx-combined.log", "nginx.json"} {
		text, err := os.ReadFile(filepath.Join("testdata", name))
		require.NoError(f, err)
		f.Add(text[:min(len(text), 4096)])
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		var l Ledger
		r, err := Open(bytes.NewReader(text), Options{}, &l)
		if err != nil {
			return
		}
		defer r.Close()
		for n := 0; err == nil; n++ {
			require.LessOrEqual(t, n, len(text)+1<<20)
			err = r.Next(&Record{})
		}
		balances(t, l)
	})
}

// TestTicksAreSpread has more requests of one second than are held: each tenth of it has its share, and they keep their order.
func TestTicksAreSpread(t *testing.T) {
	const n, second = 400_000, int64(1e9)
	s := NewSorter(1 << 20)
	defer s.Close()
	for i := range uint32(n) {
		require.NoError(t, s.Add(Request{Stamp{At: 7 * second, Tick: second, Client: i}, []byte("GET")}))
	}
	var tenths [10]int
	var next uint32
	require.NoError(t, s.Each([32]byte{}, func(r *Request) error {
		require.Equal(t, next, r.Client)
		next++
		tenths[(r.At-7*second)*10/second]++
		return nil
	}))
	require.EqualValues(t, n, next)
	for _, of := range tenths {
		require.InDelta(t, n/10, of, 5*math.Sqrt(n*0.1*0.9))
	}
}
