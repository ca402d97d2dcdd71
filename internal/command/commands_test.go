package command_test

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/loadgen/loadgen/internal/result/run"
	"github.com/loadgen/loadgen/internal/servertest"
)

// commandsPlan loads every data type by its own commands, in a mix, in a scenario and at a schedule.
const commandsPlan = `
plan "commands" {}
variable "endpoints" { type = list(string) }
variable "cluster" { default = false }
variable "protocol" { default = 2 }
variable "executor" { default = "event loop" }
variable "duration" { default = "" }
target "cache" {
	driver    = "redis"
	endpoints = var.endpoints
	executor  = var.executor
	cluster   = var.cluster
	protocol  = var.protocol
	op "get" {
		request { command = ["HGET", "h:{{{key}}}", "name"] }
	}
	op "put" {
		request { command = ["HSET", "h:{{{key}}}", "name", "{field.name}", "born", "{field.born}"] }
	}
	op "all" {
		request { command = ["HGETALL", "h:{{{key}}}"] }
		expect { miss = ["empty"] }
	}
	op "push" {
		request { command = ["LPUSH", "l:{{{key}}}", "{value}"] }
	}
	op "range" {
		request { command = ["LRANGE", "l:{{{key}}}", "0", "9"] }
		expect { miss = ["empty"] }
	}
	op "score" {
		request { command = ["ZADD", "z:{{{key}}}", "{n}", "{run}:{n}"] }
	}
	op "top" {
		request { command = ["ZRANGEBYSCORE", "z:{{{key}}}", "-inf", "+inf", "LIMIT", "0", "10"] }
	}
	op "log" {
		request { command = ["XADD", "x:{{{key}}}", "MAXLEN", "~", "100", "*", "entry", "{value}"] }
	}
	op "visit" {
		request {
			command = ["EVALSHA", "1", "v:{{{key}}}"]
			script  = "return redis.call('INCR', KEYS[1])"
		}
	}
}
dataset "people" {
	keys { count = 200 }
	values {
		checked = false
		record = {
			name = "lorem(2)"
			born = "date"
		}
	}
}
phase "fill" {
	target  = target.cache
	dataset = dataset.people
	populate {}
}
phase "mix" {
	target      = target.cache
	dataset     = dataset.people
	ops         = { get = 1, put = 1, all = 1, push = 1, range = 1, score = 1, top = 1, log = 1, visit = 1 }
	expect_hits = 1
	max_bad     = 0
	closed {
		sessions   = 4
		pipeline   = 4
		iterations = var.duration == "" ? 1000 : null
		duration   = var.duration == "" ? null : var.duration
	}
}
phase "one" {
	target  = target.cache
	dataset = dataset.people
	ops     = { visit = 1 }
	max_bad = 0
	closed {
		sessions = 4
		pipeline = 8
		duration = "300ms"
	}
}
phase "basket" {
	target  = target.cache
	dataset = dataset.people
	max_bad = 0
	scenario "buy" {
		step "all" {}
		step "push" { key = "same" }
		step "visit" { key = "same" }
	}
	open {
		rate     = "1k/s"
		duration = "500ms"
	}
}
`

// commandsOf are the commands of the ops of commandsPlan, as servers count them.
var commandsOf = map[string]string{
	"get": "hget", "put": "hset", "all": "hgetall", "push": "lpush", "range": "lrange", "score": "zadd", "top": "zrangebyscore", "log": "xadd", "visit": "evalsha",
}

// carriedOut counts the calls of each command that a server carried out.
func carriedOut(t *testing.T, addr string) map[string]uint64 {
	t.Helper()
	all := map[string]uint64{}
	for line := range strings.Lines(ask(t, addr, "INFO", "commandstats")) {
		name, rest, _ := strings.Cut(strings.TrimSpace(line), ":calls=")
		calls, _, _ := strings.Cut(rest, ",")
		n, err := strconv.ParseUint(calls, 10, 64)
		if name, ok := strings.CutPrefix(name, "cmdstat_"); ok && err == nil {
			all[name] = n
		}
	}
	return all
}

// requireCarriedOut compares the requests ledger with what servers have counted since a CONFIG RESETSTAT.
func requireCarriedOut(t *testing.T, r *run.Run, servers []*servertest.Server) {
	t.Helper()
	for _, s := range servers {
		got := carriedOut(t, s.Addr)
		for op, command := range commandsOf {
			var answered uint64
			for _, p := range r.Phase {
				for _, row := range p.Requests {
					if row.Endpoint == s.Addr && row.Verb == op {
						answered += row.Answered
						require.Equal(t, row.Sent, row.Answered, "%s: %+v", op, row)
					}
				}
			}
			require.Equal(t, answered, got[command], "%s at %s", command, s.Addr)
		}
	}
}

func TestCommandsInThePlansWords(t *testing.T) {
	t.Parallel()
	single := []*servertest.Server{servertest.StartRedis(t)}
	cluster := servertest.RedisCluster(t, 3, 0)
	for _, tt := range []struct {
		name    string
		servers []*servertest.Server
		vars    []string
	}{
		{"a server", single, nil},
		{"in RESP3", single, []string{"-var", "protocol=3"}},
		{"by the blocking executor", single, []string{"-var", "executor=blocking"}},
		{"a cluster", cluster, []string{"-var", "cluster=true"}},
		{"a cluster in RESP3", cluster, []string{"-var", "cluster=true", "-var", "protocol=3"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			for _, s := range tt.servers {
				require.Equal(t, "OK", ask(t, s.Addr, "FLUSHALL"))
			}
			resetCounters(t, tt.servers)
			r := begin(t, commandsPlan, append([]string{"-var", nodes(addresses(tt.servers)...)}, tt.vars...)...).result(60 * time.Second)
			require.Equal(t, run.Complete, r.Verdict.Completeness, r.Verdict.Reasons)
			requireCarriedOut(t, r, tt.servers)
			mix := r.Phase["mix"]
			require.Equal(t, []string{"get", "put", "all", "log", "push", "range", "score", "top", "visit"}, mix.Verbs())
			for name, o := range mix.Op {
				require.Equal(t, o.Due, o.OK+o.Miss, "%s: %+v %v", name, o, mix.Errors)
				require.Positive(t, o.OK, name)
			}
			require.Zero(t, mix.Op["get"].Miss+mix.Op["all"].Miss, "populate has put every hash")
			require.Positive(t, mix.Op["range"].Miss, "lists begin empty")
			require.Zero(t, mix.Op["top"].Miss, "an empty array is ok where nothing says otherwise")
			require.EqualValues(t, 200, r.Phase["fill"].Op["put"].OK)
			require.Equal(t, []string{"all", "push", "visit"}, r.Phase["basket"].Scenario["buy"].Steps)
			require.Positive(t, r.Phase["basket"].Scenario["buy"].OK)
			moved, asked := redirects(mix)
			require.Zero(t, moved+asked, "requests go to the node of their hash tag")
		})
	}
}

// A server that forgets its scripts, as a restarted one does, gets them again.
func TestAForgottenScriptDoesNotEndTheLoad(t *testing.T) {
	t.Parallel()
	server := servertest.StartRedis(t)
	plan := strings.ReplaceAll(commandsPlan, "max_bad = 0", "max_bad = 1")
	l := begin(t, plan, "-var", nodes(server.Addr), "-var", "duration=4s")
	l.underWay()
	require.Equal(t, "OK", ask(t, server.Addr, "SCRIPT", "FLUSH"))
	r := l.result(60 * time.Second)
	mix := r.Phase["mix"]
	visit := mix.Op["visit"]
	require.Positive(t, mix.Reconnects, "connections were made anew")
	require.Less(t, visit.Error, visit.OK/10, "and went on: %+v", visit)
	require.Zero(t, r.Phase["one"].Op["visit"].Error)
}

// A command that a server lacks is reported before the load; one that it refuses later is counted, with the server's words.
func TestCommandsThatAServerRefuses(t *testing.T) {
	t.Parallel()
	server := servertest.StartRedis(t)
	unknown := strings.Replace(commandsPlan, `"HGETALL"`, `"HGETTALL"`, 1)
	r := begin(t, unknown, "-var", nodes(server.Addr)).result(60 * time.Second)
	require.Equal(t, 6, r.ExitCode)
	require.Contains(t, strings.Join(r.Verdict.Reasons, "\n"), `op "all": the server has no command HGETTALL`)

	wrong := strings.Replace(commandsPlan, `"LRANGE", "l:{{{key}}}"`, `"LRANGE", "h:{{{key}}}"`, 1)
	r = begin(t, wrong, "-var", nodes(server.Addr)).result(60 * time.Second)
	require.Equal(t, 4, r.ExitCode)
	mix := r.Phase["mix"]
	require.Equal(t, mix.Op["range"].Due, mix.Op["range"].Error)
	require.Contains(t, mix.Errors[0].Text, "WRONGTYPE")
}

// TestReadsOfWhatIsNotThere: replies for absent keys are ok and fast, and those for other values than the dataset's look like any. The report says so.
func TestReadsOfWhatIsNotThere(t *testing.T) {
	t.Parallel()
	phase := func(name, dataset, ops string) string {
		return fmt.Sprintf("phase %q {\n\ttarget = target.c\n\tdataset = dataset.%s\n\tops = { %s }\n\tclosed { iterations = 100 }\n}\n", name, dataset, ops)
	}
	own := func(name string, command ...string) string {
		return fmt.Sprintf("\top %q {\n\t\trequest { command = [%s] }\n\t}\n", name, `"`+strings.Join(command, `", "`)+`"`)
	}
	l := begin(t, "plan \"own\" {}\ntarget \"c\" {\n\tdriver = \"redis\"\n\tendpoints = [\""+servertest.Redis(t)+"\"]\n"+
		own("profile", "HGETALL", "user:{key}")+own("bit", "GETBIT", "bits:{key}", "7")+own("range", "LRANGE", "list:{key}", "0", "9")+
		own("push", "RPUSH", "list:{key}", "{value}")+own("size", "STRLEN", "{key}")+own("part", "GETRANGE", "{key}", "0", "9")+`}
dataset "d" {
	keys { count = 10 }
	values { size = 100 }
}
dataset "larger" {
	keys { count = 10 }
	values { size = 1000 }
}
phase "fill" {
	target  = target.c
	dataset = dataset.d
	populate {}
}
`+phase("absent", "d", "profile = 1, bit = 1, range = 1")+phase("pushed", "d", "push = 1")+phase("there", "d", "get = 1, size = 1, part = 1, range = 1")+phase("other", "larger", "get = 1"))
	r := l.result(60 * time.Second)
	require.Contains(t, fmt.Sprint(r.Phase["absent"].Reasons), "100 of 100 GETBIT and HGETALL and LRANGE asked for absent keys, says the server")
	require.Contains(t, l.stdout.String(), "  counted     twice: redis counted the same ")
	require.Empty(t, r.Phase["there"].Notes)
	require.Equal(t, []string{"gets were answered with 108 B on average, protocol included, but the dataset's values have at least 1.00 kB: these are other values"}, r.Phase["other"].Notes)
}
