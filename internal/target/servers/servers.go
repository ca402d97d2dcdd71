// Package servers says, in a row for each driver, what its servers show of themselves and how people address them. It is data alone: packages command,
// judge and footprint ask it instead of naming drivers.
package servers

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/loadgen/loadgen/pkg/plan"
)

// Server is a kind of server. Names are those of figures that it reports; "" or none of what it does not report.
type Server struct {
	Driver    string
	Schemes   []Scheme
	Sessions  int      // how many clients capacity and bench open
	Objective string   // their objective for response times; "" if they do not load it
	Expires   bool     // its keys can be given a time to live
	Ask       []string // figures that show, before a load, whether it may be filled
	Carried   []string // counters of the commands of all its clients
	Refused   string   // counter of connections
	Evicted   string   // counter of keys
	Busy      []string // counters of processor time, to be added
	CPU       []string // the same of the whole process; nil if it does not report them
	Spins     string   // if above 0, its processor time says nothing
	Threads   string   // number of threads that share Busy; "" for its main thread
	Waits     []string // numbers of sessions by what they wait for
	Groups    bool     // it may make several clients' writes durable at once, so that late ones end sooner
	Counts    *Counts  // nil if it does not count what it is asked, or only at a price
	Store
}

// Counts names the counters that say what servers were asked. Each is exact once the last reply has come.
type Counts struct {
	Verbs   map[string]Command // by verb; nil if all requests count in All alone, and the plan observes the server
	Batches map[string]Command // the same of batches; nil if they count by their keys
	Own     string             // pattern of the counter of an op in the plan's own words, for its command in lower case; "" if they are not counted
	All     string             // of all commands, whoever sends them; "" if there is none
	Misses  string             // keys that were not there; "" if not counted
	Steady  []string           // counters that fall when all begin anew
	Resets  []string           // figures that change when somebody sets counters to 0
	Several []string           // commands, in lower case, that read several keys at once or carry out others
	Dials   string             // of connections; "" if not counted
	Ages    []string           // keys that it has evicted by an LRU whose clock counts seconds, then those that it holds, by database; nil if it has none
	Copies  string             // a figure that only servers have which copy the writes of another
}

// Command is a command with the counters to add, of which a server may lack some.
type Command struct {
	Name     string
	Counters []string
}

// Of returns the command that a verb's requests are counted as, or false if that is not known. own is the command of an op in the plan's own words.
func (c *Counts) Of(verb, own string, batch bool) (Command, bool) {
	by := c.Verbs
	if batch {
		by = c.Batches
	}
	if own == "" || c.Verbs == nil {
		command, ok := by[verb]
		return command, ok
	}
	if name := strings.ToLower(own); c.Own != "" && !waits.MatchString(name) {
		return Command{own, []string{fmt.Sprintf(c.Own, name)}}, true
	}
	return Command{}, false
}

// waits matches commands that may wait: some versions count these twice, or when the wait is over.
var waits = regexp.MustCompile(`^(b[lrz].*|xread.*|wait.*)$`)

// Scheme is that of a URL.
type Scheme struct {
	Name string
	Port string // the usual one
	TLS  bool
}

// Store names the figures that show how much memory items take.
type Store struct {
	Memory string   // the figure that its limit applies to; "" if it reports none
	Items  string   // the pattern (package path) of the figure that says how many items it holds
	Beside string   // its own figure of its process's memory; "" if there is none
	Says   string   // what Beside is, in words
	Limit  string   // the figure of its limit, in bytes, which is 0 or missing without a limit; "" if it reports none
	Less   string   // what else the limit must cover, in words
	Lost   []string // counters that must not move
	Table  bool     // it has a hash table of keys of known size

	Process []string // the figures of an observed process that show its memory; nil if its items are not in one process
	Still   string   // what to do if its memory does not grow; "" if no remedy is known
}

// All lists the kinds of servers.
func All() []Server {
	return []Server{
		{
			Driver: "redis", Schemes: []Scheme{{"redis", "6379", false}, {"rediss", "6379", true}, {"valkey", "6379", false}}, Sessions: 50, Objective: "p95=5ms",
			Expires: true, Ask: []string{"slave_read_only", "cluster_enabled", "used_memory", "maxmemory"}, Carried: []string{"total_commands_processed"},
			CPU:  []string{"used_cpu_user", "used_cpu_sys"},
			Busy: []string{"used_cpu_user_main_thread", "used_cpu_sys_main_thread"}, Spins: "io_threads_active", Evicted: "evicted_keys", Refused: "rejected_connections",
			Counts: &Counts{
				Verbs: map[string]Command{
					"get": {"GET", []string{"cmdstat_get_calls"}}, "put": {"SET", []string{"cmdstat_set_calls"}}, "delete": {"DEL", []string{"cmdstat_del_calls"}},
				},
				Batches: map[string]Command{"get": {"MGET", []string{"cmdstat_mget_calls"}}, "put": {"MSET", []string{"cmdstat_mset_calls"}}},
				Own:     "cmdstat_%s_calls", All: "total_commands_processed", Misses: "keyspace_misses",
				Steady:  []string{"total_connections_received", "total_net_input_bytes", "keyspace_hits", "uptime_in_seconds"},
				Resets:  []string{"cmdstat_config_resetstat_calls", "cmdstat_config_resetstat_usec"},
				Several: []string{"mget", "exists", "touch", "eval", "evalsha", "eval_ro", "evalsha_ro", "fcall", "fcall_ro", "migrate", "sort", "pfcount", "sdiff", "sinter", "sunion", "requests"}, Copies: "slave_read_only", Dials: "total_connections_received",
				Ages: []string{"evicted_keys", "db0_keys", "db1_keys", "db2_keys", "db3_keys", "db4_keys", "db5_keys", "db6_keys", "db7_keys"},
			},
			Store: Store{
				Memory: "used_memory", Items: "db*_keys", Beside: "used_memory_rss", Says: "of the process", Limit: "maxmemory",
				Lost: []string{"evicted_keys", "expired_keys"}, Table: true, Process: OfProcess(),
			},
		},
		{
			Driver: "memcached", Schemes: []Scheme{{"memcached", "11211", false}}, Sessions: 50, Objective: "p95=5ms",
			Expires: true, Ask: []string{"curr_items", "bytes", "limit_maxbytes"}, Carried: []string{"cmd_get", "cmd_set"},
			CPU:  []string{"rusage_user", "rusage_system"},
			Busy: []string{"rusage_user", "rusage_system"}, Threads: "threads", Evicted: "evictions", Refused: "listen_disabled_num",
			Counts: &Counts{
				Verbs: map[string]Command{
					"get": {"get", []string{"cmd_get"}}, "put": {"set", []string{"cmd_set"}}, "delete": {"delete", []string{"delete_hits", "delete_misses", "cmd_delete"}},
				},
				Misses: "get_misses", Dials: "total_connections", Steady: []string{"total_connections", "bytes_read", "get_hits", "uptime"},
			},
			Store: Store{
				Memory: "bytes", Items: "curr_items", Limit: "limit_maxbytes", Less: "less what its slabs leave free: up to a fifth",
				Lost: []string{"evictions"}, Process: OfProcess(),
			},
		},
		{
			Driver: "postgres", Groups: true, Schemes: []Scheme{{"postgres", "5432", false}, {"postgresql", "5432", false}}, Sessions: 16, Objective: "p95=50ms",
			Ask: []string{"connections"}, Carried: []string{"xact_commit"},
			Counts: &Counts{Verbs: map[string]Command{
				"get": {"get", []string{"statements_get_calls"}}, "put": {"put", []string{"statements_put_calls"}}, "delete": {"delete", []string{"statements_delete_calls"}},
			}, Steady: []string{"statements_append_calls", "sessions"}, Dials: "sessions"},
			Waits: []string{"sessions_active", "sessions_running", "sessions_on_io", "sessions_on_locks"},
			Store: Store{Memory: "table_size", Items: "table_rows"},
		},
		{
			Driver: "ignite", Groups: true, Schemes: []Scheme{{"ignite", "10800", false}}, Sessions: 50, Ask: []string{"TotalServerNodes", "TotalUsedSize", "MaxSize"},
			Store: Store{
				Memory: "TotalUsedSize", Items: "OffHeapPrimaryEntriesCount", Limit: "MaxSize", Lost: []string{"CacheEvictions"}, Process: OfProcess(),
				Still: "set metricsEnabled for its data region",
			},
		},
		{Driver: "web", Schemes: []Scheme{{"http", "80", false}, {"https", "443", true}}, Sessions: 50, Objective: "p95=500ms", Counts: &Counts{All: "requests", Dials: "accepts"}},
	}
}

// Of returns the servers of a driver; the zero value if they show nothing.
func Of(driver string) Server {
	for _, s := range All() {
		if s.Driver == driver {
			return s
		}
	}
	return Server{}
}

// OfProcess returns the figures of an observed process's memory.
func OfProcess() []string { return []string{"rss_bytes", plan.GroupField} }

// Strain lists the figures to observe under load: they say what gives out.
func (s *Server) Strain() []string {
	names := slices.Concat(s.Busy, []string{s.Spins, s.Threads, s.Evicted, s.Refused}, s.Waits)
	return slices.DeleteFunc(names, func(name string) bool { return name == "" })
}
