// Package servers says, in a row for each driver, what its servers show of themselves and how people address them. It is data alone: packages command,
// judge and footprint ask it instead of naming drivers.
package servers

import (
	"slices"

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
	Store
}

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
			Store: Store{
				Memory: "bytes", Items: "curr_items", Limit: "limit_maxbytes", Less: "less what its slabs leave free: up to a fifth",
				Lost: []string{"evictions"}, Process: OfProcess(),
			},
		},
		{
			Driver: "postgres", Groups: true, Schemes: []Scheme{{"postgres", "5432", false}, {"postgresql", "5432", false}}, Sessions: 16, Objective: "p95=50ms",
			Ask: []string{"connections"}, Carried: []string{"xact_commit"},
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
		{Driver: "web", Schemes: []Scheme{{"http", "80", false}, {"https", "443", true}}, Sessions: 50, Objective: "p95=500ms"},
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
