package redis

import (
	"bytes"
	"context"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/loadgen/loadgen/internal/servertest"
	"github.com/loadgen/loadgen/pkg/driver"
	"github.com/loadgen/loadgen/pkg/driver/drivertest"
)

// formOf returns an op in a plan's words, with a verb of the plan's own; stores selects one that stores a value.
func formOf(stores bool, expect *Expect, command ...string) driver.Form {
	verb, _ := driver.NewWords(map[string]bool{"own": stores}).Verb("own")
	return driver.Form{Verb: verb, Name: "own", Words: &Form{Request: Request{Command: command}, Expect: expect}}
}

// as is the form for another verb.
func as(verb driver.Verb, f driver.Form) driver.Form {
	f.Verb, f.Name = verb, verb.String()
	return f
}

func codecOf(t testing.TB, protocol int, forms ...driver.Form) driver.Codec {
	c, err := Driver{}.NewCodec(driver.Link{Config: &Config{Protocol: protocol}, Run: "r1", Forms: forms})
	require.NoError(t, err)
	return c
}

func TestFormsGoOutAsCommands(t *testing.T) {
	value := driver.Value{Size: 120, Seed: 3}
	whole := string(value.AppendTo(nil))
	for _, tt := range []struct{ command, want []string }{
		{[]string{"PING"}, []string{"PING"}},
		{[]string{"GET", "{key}"}, []string{"GET", "the key"}},
		{[]string{"hset", "h:{{{key}}}", "f", "{value}", ""}, []string{"hset", "h:{the key}", "f", whole, ""}},
		{[]string{"ZADD", "{key}", "{n}", "{run}-{key}-{n}"}, []string{"ZADD", "the key", "1234567890", "r1-the key-1234567890"}},
		{[]string{"SET", "{key}", "<{value}{key}>", "EX", "10"}, []string{"SET", "the key", "<" + whole + "the key>", "EX", "10"}},
		{[]string{"SET", "{key}", "{field.none}x", "{value}"}, []string{"SET", "the key", "x", whole}},
	} {
		f := formOf(true, nil, tt.command...)
		for _, protocol := range []int{2, 3} {
			req := driver.Request{Verb: f.Verb, Key: []byte("the key"), Value: &value, N: 1234567890}
			require.Equal(t, string(AppendCommand([]byte("before"), tt.want...)), string(codecOf(t, protocol, f).AppendRequest([]byte("before"), &req)))
			req.Asking = true
			require.Equal(t, asking+string(AppendCommand(nil, tt.want...)), string(codecOf(t, protocol, f).AppendRequest(nil, &req)))
		}
	}
}

// A form worded like the driver's own request yields the same bytes, and takes the same fast path.
func TestFormsAreLaidOutWhereTheyCanBe(t *testing.T) {
	for _, tt := range []struct {
		stores  bool
		command []string
		laid    bool
	}{
		{false, []string{"GET", "{key}"}, true},
		{false, []string{"HGET", "h:{{{key}}}", "f"}, true},
		{true, []string{"HSET", "{key}", "f", "{value}", "g", "1"}, true},
		{true, []string{"SET", "{key}", "<{value}>"}, true},
		{true, []string{"LPUSH", "{value}", "{key}"}, false},      // the value first
		{true, []string{"SET", "{key}", "{key}{value}"}, false},   // the key twice
		{false, []string{"ZADD", "{key}", "{n}", "x"}, false},     // lengths that differ
		{true, []string{"SET", "{key}", "{field.name}"}, false},   // likewise
		{false, []string{"PING"}, false},                          // no key
		{true, []string{"MSET", "a", "{key}{value}"}, false},      // in one argument
		{true, []string{"SET", "{key}", "constant"}, false},       // a verb that stores, but the value is not sent
		{false, []string{"EXPIRE", "{run}:{{{key}}}", "9"}, true}, // {run} is the same for all
	} {
		f := formOf(tt.stores, nil, tt.command...)
		if strings.Contains(strings.Join(tt.command, ""), "constant") {
			f = as(driver.Put, f)
		}
		c := codecOf(t, 2, f)
		for _, length := range []int{1, 9, 10, 99, 100} {
			for _, size := range []int{0, 9, 10, 1000} {
				first := driver.Request{Verb: f.Verb, Key: bytes.Repeat([]byte("a"), length), Value: &driver.Value{Size: size, Seed: 1}}
				second := driver.Request{Verb: f.Verb, Key: bytes.Repeat([]byte("b"), length), Value: &driver.Value{Size: size, Seed: 2}}
				keyAt, valueAt := c.(driver.Layout).Offsets(&first)
				require.Equal(t, tt.laid, keyAt >= 0, "%v", tt.command)
				if !tt.laid {
					continue
				}
				made := c.AppendRequest(nil, &first)
				copy(made[keyAt:], second.Key)
				if tt.stores {
					copy(made[valueAt:], second.Value.AppendTo(nil))
				}
				require.Equal(t, string(c.AppendRequest(nil, &second)), string(made), "%v", tt.command)
			}
		}
	}
	plain, worded := codecOf(t, 2), codecOf(t, 2, as(driver.Get, formOf(false, nil, "GET", "{key}")))
	req := driver.Request{Verb: driver.Get, Key: []byte("k")}
	require.Equal(t, plain.AppendRequest(nil, &req), worded.AppendRequest(nil, &req))
}

func TestRepliesToForms(t *testing.T) {
	zero := &Expect{Miss: []string{"0", "empty"}}
	only := &Expect{OK: []string{"integer"}, Error: []string{"-1"}}
	for _, tt := range []struct {
		protocol int
		expect   *Expect
		reply    string
		want     driver.Outcome
		message  string
	}{
		{2, nil, "$3\r\nabc\r\n", driver.OK, ""},
		{2, nil, "$-1\r\n", driver.Miss, ""},
		{2, nil, "*-1\r\n", driver.Miss, ""},
		{2, nil, ":0\r\n", driver.OK, ""},
		{2, nil, "+OK\r\n", driver.OK, ""},
		{2, nil, "*0\r\n", driver.OK, ""},
		{2, nil, "*2\r\n*3\r\n:1\r\n$-1\r\n*0\r\n$1\r\na\r\n", driver.OK, ""},
		{2, nil, "-ERR no\r\n", driver.Error, "ERR no"},
		{2, nil, "*1\r\n-ERR within\r\n", driver.Error, "ERR within"},
		{2, nil, "$0\r\n\r\n", driver.OK, ""},
		{3, nil, "_\r\n", driver.Miss, ""},
		{3, nil, "%2\r\n+a\r\n:1\r\n+b\r\n%1\r\n:1\r\n~1\r\n#t\r\n", driver.OK, ""},
		{3, nil, ",1.5\r\n", driver.OK, ""},
		{3, nil, ">2\r\n+x\r\n+y\r\n|1\r\n+a\r\n+b\r\n*1\r\n:7\r\n", driver.OK, ""},
		{3, nil, "=7\r\ntxt:abc\r\n", driver.OK, ""},
		{2, zero, ":0\r\n", driver.Miss, ""},
		{2, zero, ":1\r\n", driver.OK, ""},
		{2, zero, "*0\r\n", driver.Miss, ""},
		{2, zero, "$0\r\n\r\n", driver.Miss, ""},
		{3, zero, "%0\r\n", driver.Miss, ""},
		{3, zero, "%1\r\n:1\r\n:2\r\n", driver.OK, ""},
		{2, zero, "*-1\r\n", driver.Miss, ""},
		{2, only, ":5\r\n", driver.OK, ""},
		{2, only, ":-1\r\n", driver.Error, "a reply that is not expected: an integer"},
		{2, only, "+OK\r\n", driver.Error, "a reply that is not expected: a status"},
		{2, only, "$-1\r\n", driver.Miss, ""},
		{2, &Expect{Error: []string{"null"}}, "$-1\r\n", driver.Error, "a reply that is not expected: null"},
		{3, &Expect{Miss: []string{"false"}, Error: []string{"number", "map"}}, "#f\r\n", driver.Miss, ""},
		{3, &Expect{Miss: []string{"false"}, Error: []string{"number", "map"}}, "#t\r\n", driver.OK, ""},
		{3, &Expect{Error: []string{"number", "map"}}, ",3\r\n", driver.Error, "a reply that is not expected: a number or a boolean"},
		{3, &Expect{Error: []string{"number", "map"}}, "%0\r\n", driver.Error, "a reply that is not expected: a map"},
		{3, &Expect{OK: []string{"array"}}, "*2\r\n%1\r\n+a\r\n!5\r\nERR x\r\n-ERR y\r\n", driver.Error, "ERR x"},
	} {
		f := formOf(false, tt.expect, "GET", "{key}")
		c := codecOf(t, tt.protocol, f)
		var r driver.Reply
		for cut := range tt.reply {
			n, err := c.Parse([]byte(tt.reply[:cut]), f.Verb, &r)
			require.NoError(t, err, tt.reply)
			require.Zero(t, n, "%q cut at %d", tt.reply, cut)
		}
		n, err := c.Parse([]byte(tt.reply+"+next"), f.Verb, &r)
		require.NoError(t, err, tt.reply)
		require.Equal(t, len(tt.reply), n, tt.reply)
		require.Equal(t, tt.want, r.Outcome, "%q with %+v", tt.reply, tt.expect)
		require.Equal(t, tt.message, string(r.Message), tt.reply)
		skimmed, took := c.(driver.Skimmer).Skim([]byte(tt.reply+tt.reply), f.Verb, 2)
		if skimmed > 0 {
			require.Equal(t, driver.OK, r.Outcome, "skimmed %q", tt.reply)
			require.Equal(t, 2*len(tt.reply), took)
		}
	}
}

// A delete in the plan's words misses as the driver's own does.
func TestADeleteInOtherWordsMisses(t *testing.T) {
	c := codecOf(t, 2, as(driver.Delete, formOf(false, nil, "HDEL", "{key}", "f")))
	var r driver.Reply
	for reply, want := range map[string]driver.Outcome{":0\r\n": driver.Miss, ":1\r\n": driver.OK, "$-1\r\n": driver.Miss} {
		_, err := c.Parse([]byte(reply), driver.Delete, &r)
		require.NoError(t, err)
		require.Equal(t, want, r.Outcome, reply)
	}
}

func TestRepliesToFormsAreBounded(t *testing.T) {
	f := formOf(false, nil, "GET", "{key}")
	var r driver.Reply
	for _, protocol := range []int{2, 3} {
		c := codecOf(t, protocol, f)
		deep := strings.Repeat("*1\r\n", maxElements/2) + ":1\r\n"
		n, err := c.Parse([]byte(deep), f.Verb, &r)
		require.NoError(t, err)
		require.Equal(t, len(deep), n, "however deep")
		_, err = c.Parse([]byte(strings.Repeat("*1\r\n", maxElements+2)), f.Verb, &r)
		require.ErrorContains(t, err, "of more than")
		for _, wrong := range []string{"*1\r\n?\r\n", "*99999999999\r\n:1\r\n", "*x\r\n", "!\r\n", "*1\r\n$3\r\nabcd\r\n"} {
			_, err = c.Parse([]byte(wrong), f.Verb, &r)
			require.Error(t, err, wrong)
		}
	}
}

func TestFormsAllocateNothing(t *testing.T) {
	value := driver.Value{Size: 100}
	f := formOf(true, &Expect{Miss: []string{"0", "empty"}}, "ZADD", "z:{{{key}}}", "{n}", "{value}")
	for _, protocol := range []int{2, 3} {
		c := codecOf(t, protocol, f)
		req := driver.Request{Verb: f.Verb, Key: []byte("key"), Value: &value, N: 77}
		dst, reply := make([]byte, 0, 1<<10), []byte("*2\r\n*1\r\n:1\r\n$3\r\nabc\r\n")
		var r driver.Reply
		require.Zero(t, testing.AllocsPerRun(100, func() {
			dst = c.AppendRequest(dst[:0], &req)
			_, _ = c.Parse(reply, f.Verb, &r)
		}))
	}
}

func TestCheckFormSaysWhatToWrite(t *testing.T) {
	script := func(command ...string) driver.Form {
		f := formOf(false, nil, command...)
		f.Words.(*Form).Request.Script = "return 1"
		return f
	}
	for _, tt := range []struct {
		form driver.Form
		says string
	}{
		{formOf(false, nil), `command is empty: write its name and arguments, such as ["HGETALL", "{key}"]`},
		{formOf(false, nil, "GET {key}"), "write a command's name, and each argument as a text of its own"},
		{formOf(false, nil, "{key}"), "write a command's name"},
		{formOf(false, nil, "GET", "{kye}"), `command[1] is "{kye}": unknown placeholder {kye} at character 1; write {key}`},
		{formOf(false, nil, "blpop", "{key}", "0"), "command is BLPOP, which keeps all later requests on the connection waiting"},
		{formOf(false, nil, "WAIT", "1", "0"), "keeps all later requests"},
		{formOf(false, nil, "SUBSCRIBE", "{key}"), "messages instead of replies"},
		{formOf(false, nil, "MULTI"), "write a script instead"},
		{formOf(false, nil, "SELECT", "1"), "write what it is for in the target"},
		{formOf(false, nil, "SHUTDOWN"), "leave it out"},
		{formOf(false, nil, "XREAD", "block", "0", "STREAMS", "{key}", "$"), "XREAD with BLOCK"},
		{script("GET", "{key}"), `script is with GET: write command = ["EVALSHA", "1", "{key}"]`},
		{formOf(false, &Expect{Miss: []string{"nil"}}, "GET", "{key}"), `miss has "nil": write "null", "empty"`},
		{formOf(false, &Expect{Miss: []string{"0"}, Error: []string{"0"}}, "GET", "{key}"), `error has "0" a second time`},
		{formOf(false, nil, make([]string, maxArguments+1)...), "command is empty"},
		{formOf(false, nil, append([]string{"DEL"}, make([]string, maxArguments)...)...), "command of 257 words: write at most 256"},
	} {
		_, err := Driver{}.CheckForm(&Config{}, tt.form)
		require.ErrorContains(t, err, tt.says)
	}
	w, err := Driver{}.CheckForm(&Config{}, formOf(true, nil, "HSET", "{key}", "a", "{field.a}", "b", "{value}"))
	require.NoError(t, err)
	require.True(t, w.Stores && w.Keyed)
	require.Equal(t, []string{"a"}, w.Fields)
}

// On a cluster a request goes to the node of its op's key, so that must be what the command's key is hashed by.
func TestFormsOnAClusterHaveTheirKeyWhereItDecides(t *testing.T) {
	for _, good := range [][]string{
		{"GET", "{key}"}, {"HGETALL", "h:{{{key}}}:x"}, {"EVALSHA", "sum", "1", "{key}"}, {"XREAD", "COUNT", "1", "STREAMS", "{key}", "0"}, {"XINFO", "STREAM", "{key}"},
	} {
		_, err := Driver{}.CheckForm(&Config{Cluster: true}, formOf(false, nil, good...))
		require.NoError(t, err, "%v", good)
	}
	for _, bad := range [][]string{
		{"GET", "user:{key}"},
		{"ZADD", "board", "1", "{key}"},
		{"GET", "{{a}}{{{key}}}"},
		{"GET", "{{x{key}}}"},
		{"PING"},
		{"EVALSHA", "sum", "{key}", "k"},
		{"GET", "{{{key}"},
		{"GET", "{{{key}x}}"},
	} {
		_, err := Driver{}.CheckForm(&Config{Cluster: true}, formOf(false, nil, bad...))
		require.Error(t, err, "%v", bad)
		if len(bad) > 1 && bad[len(bad)-1] != "{{{key}" {
			require.ErrorContains(t, err, "on a cluster: write")
		}
		if bad[0] != "GET" || bad[1] != "{{{key}" {
			_, err = Driver{}.CheckForm(&Config{}, formOf(false, nil, bad...))
			require.NoError(t, err, "%v, without one", bad)
		}
	}
}

// The suite's gets, puts and deletes use a field of a hash, on a server.
func TestConformanceOfForms(t *testing.T) {
	addr := servertest.Redis(t)
	for _, protocol := range []int{2, 3} {
		drivertest.Run(t, drivertest.Suite{
			Driver: Driver{}, Config: &Config{Protocol: protocol, Database: protocol}, Dial: dialer(addr),
			Forms: []driver.Form{
				as(driver.Get, formOf(false, nil, "HGET", "h:{{{key}}}", "f")),
				as(driver.Put, formOf(true, nil, "HSET", "h:{{{key}}}", "f", "{value}")),
				as(driver.Delete, formOf(false, nil, "HDEL", "h:{{{key}}}", "f")),
			},
		})
	}
}

// Before the load, a server reports that it lacks a command, or that the plan's arguments do not fit.
func TestIdentifyAsksAboutCommands(t *testing.T) {
	addr := servertest.Redis(t)
	identify := func(f driver.Form) error {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		conn, err := dialer(addr)()
		require.NoError(t, err)
		defer conn.Close()
		_, err = Driver{}.Identify(ctx, conn, driver.Link{Config: &Config{Protocol: 2}, Forms: []driver.Form{f}})
		return err
	}
	require.NoError(t, identify(formOf(true, nil, "HSET", "{key}", "f", "{value}")))
	require.ErrorContains(t, identify(formOf(false, nil, "HGETTALL", "{key}")), `op "own": the server has no command HGETTALL`)
	require.ErrorContains(t, identify(formOf(false, nil, "HSET", "{key}", "f")), `op "own": command HSET: it has 3 words, and takes at least 4, its name included`)
	require.ErrorContains(t, identify(formOf(false, nil, "GET", "{key}", "x")), "it has 3 words, and takes 2")
	broken := formOf(false, nil, "EVALSHA", "1", "{key}")
	broken.Words.(*Form).Request.Script = "return ("
	require.ErrorContains(t, identify(broken), "SCRIPT LOAD: server says ERR Error compiling script")
}

// If the server has forgotten a script, the connection ends, and the next greeting loads it again.
func TestAForgottenScriptIsLoadedAgain(t *testing.T) {
	f := formOf(false, nil, "EVALSHA", "1", "{key}")
	f.Words.(*Form).Request.Script = "return redis.call('INCR', KEYS[1])"
	c := codecOf(t, 2, f)
	conn, err := dialer(servertest.Redis(t))()
	require.NoError(t, err)
	defer conn.Close()
	x := drivertest.OverConn(t, c, conn)
	got := x.Do(t, driver.Request{Verb: f.Verb, Key: []byte("k")})
	require.Equal(t, driver.OK, got[0].Outcome)
	_, err = c.Parse([]byte("-NOSCRIPT No matching script. Please use EVAL.\r\n"), f.Verb, new(driver.Reply))
	require.ErrorContains(t, err, "a new connection loads it again")
}

func TestShowFormIsWhatPeopleRead(t *testing.T) {
	sample := &driver.Request{Key: []byte("key:0"), Value: &driver.Value{Size: 100, Fill: driver.Fill{Alike: true, Byte: 'x'}}}
	require.Equal(t, `HSET key:0 "a b" `+strings.Repeat("x", 60)+"… (100 bytes)", Driver{}.ShowForm(nil, formOf(true, nil, "HSET", "{key}", "a b", "{value}"), sample, "RUN"))
	require.Equal(t, `GET "" "\x01" RUN`, Driver{}.ShowForm(nil, formOf(true, nil, "GET", "", "\x01", "{run}"), sample, "RUN"))
}

// FuzzAnswers checks that only bytes that are there are taken, and that more bytes do not change a whole reply.
func FuzzAnswers(f *testing.F) {
	for _, text := range []string{"*2\r\n:1\r\n$1\r\na\r\n", "%1\r\n+a\r\n_\r\n", ">1\r\n+x\r\n:1\r\n", "|1\r\n+a\r\n+b\r\n*0\r\n", "$-1\r\n", "*1\r\n*1\r\n*-1\r\n"} {
		f.Add([]byte(text), uint64(1))
	}
	own := formOf(false, &Expect{Miss: []string{"0", "empty"}}, "GET", "{key}")
	usual := formOf(false, nil, "GET", "{key}")
	codecs := []driver.Codec{codecOf(f, 2, own), codecOf(f, 3, own), codecOf(f, 2, usual), codecOf(f, 3, usual)}
	f.Fuzz(func(t *testing.T, b []byte, seed uint64) {
		cut := rand.New(rand.NewPCG(seed, 1)).IntN(len(b) + 1)
		for _, c := range codecs {
			var short, whole driver.Reply
			n, err := c.Parse(b[:cut], own.Verb, &short)
			require.True(t, n >= 0 && n <= cut)
			more, moreErr := c.Parse(b, own.Verb, &whole)
			if err == nil && n > 0 {
				require.NoError(t, moreErr)
				require.Equal(t, n, more)
				require.Equal(t, short, whole)
			}
			skimmed, took := c.(driver.Skimmer).Skim(b, own.Verb, 1)
			if skimmed > 0 {
				require.Equal(t, more, took)
				require.Equal(t, driver.OK, whole.Outcome)
			}
		}
	})
}
