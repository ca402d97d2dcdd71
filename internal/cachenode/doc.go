// Package cachenode is the built-in target: a cache node that speaks a part of Redis' protocol or of memcached's, keeps to
// a memory bound, stands still or answers late when told to, and counts what it really got. It is what a plan without
// endpoints runs against, the floor that other servers are compared with, and the oracle for what loadgen says it sent.
//
// # Commands of Redis
//
//	GET key                        SET key value [EX s|PX ms]    DEL key [key …]
//	MGET key [key …]               MSET key value [key value …]  EXISTS key [key …]
//	INCR key, DECR key             INCRBY key n, DECRBY key n    STRLEN key
//	EXPIRE key s, PEXPIRE key ms   TTL key, PTTL key             TYPE key
//	SCAN cursor [MATCH pattern] [COUNT n] [TYPE type]            MEMORY USAGE key
//	PING [text]                    ECHO text                     SELECT 0…15
//	INFO [section …]               DBSIZE                        FLUSHALL [SYNC|ASYNC]
//	AUTH [default] password        HELLO [2|3 [AUTH …] [SETNAME name]]
//	CONFIG GET pattern …           CLIENT ID|GETNAME|SETNAME name|SETINFO …
//	COMMAND [COUNT|DOCS|INFO …]
//
// They answer as Redis 7 does, in RESP2 until HELLO asks for RESP3. Everything else is "-ERR unknown command"; other options are
// refused. All values are strings; MEMORY USAGE is what an entry counts for here. Requests are arrays of bulk strings, of 1,024 arguments
// at most, or inline: a line of at most 64 KiB, whose words may stand in quotes. Requests that arrive together are answered together. A
// key whose time is over is there for nobody, but DBSIZE counts it until somebody has looked for it. SCAN goes through keys in the order
// in which they came, and meets a key that is there all the time exactly once.
//
// # Commands of memcached
//
//	mg key [v k s t f O…]      ms key size [k O… F0 T…]   md key [k O…]
//	mn                         version                    stats [settings|peers]
//	flush_all [0]              quit
//
// They answer as memcached 1.6 does, and version tells that it is another. Everything else is "ERROR", another flag "CLIENT_ERROR
// invalid flag". There is one key space, without client flags and passwords, so such a node listens on the loopback only: F takes 0 only. T takes seconds, or a date beyond 30 days of them. Where
// the end of a request cannot be told any more (a line of more than 2,048 bytes, data that is longer or shorter than
// announced) the connection ends after the error.
//
// # Memory
//
// An entry costs the bytes of its key and value and 96 more. Before the sum of all entries would pass the bound, the least
// recently used ones are evicted, in exact order over all databases. An entry that alone is beyond the bound is refused with
// "-OOM" or "SERVER_ERROR object too large for cache". A value that is being sent keeps its room until it has been, also when it was replaced
// or deleted meanwhile; where that leaves too little, a SET is refused the same way.
//
// Connections are bounded (10,000), and so are request sizes, unfinished requests and replies that nobody reads. A client that takes none of
// a reply for 30 s, or does not go on for as long with a request that it has begun, is sent away; INFO faults counts them as
// connections_too_slow. Whatever clients do, the process takes no more than 7 times the bound on entries, 48 KiB for each connection and
// 256 MiB.
//
// # Faults
//
// A delay holds each reply back until a while after its request arrived: always the same, or drawn for each request. It adds to latency only:
// requests that come meanwhile are taken in and answered that much after their own arrival. Replies never overtake each other: one whose
// delay is over waits for those before it on its connection. A stall makes the node stand still: it takes in nothing and sends nothing until
// it is over, then answers all that came. Delays are exact to the kernel's timers, stalls to a millisecond. A log of delays has a line for
// each request, in the order in which they were drawn:
//
//	connection,verb,arrival_ns,delay_ns
//	3,get,81920331,200000
//
// A bandwidth bounds what all connections together receive, and what they send, in bytes of the protocol. It is exact over times that are long
// beside 10 ms, and all that is on its way takes turns.
//
// Some GETs, SETs and DELs are not answered (drop), or their connection is closed (FIN) or reset (RST) instead. They are carried out and counted
// as others are; nobody is told. Replies have the order of their requests, so after a drop a connection stays silent until its client gives it
// up. INFO faults counts requests dropped, requests unanswered (those dropped and all that came behind them), and connections closed and reset.
//
// A service time makes the node a queue with one server: it works on the GETs, SETs and DELs of all connections one at a time, in the order
// in which they come, and takes for each as long as it is told, or as it draws. How long a request took is then known from when
// each came and what was drawn for it, c(i) = max(a(i), c(i−1)) + s(i), whatever a client says. INFO queue has both, of the first 100,000
// requests, in nanoseconds since the node was made:
//
//	visit_0:arrival_ns=81920331,service_ns=200000
//
// Its replies leave to the microsecond: before each, a processor looks at the clock for up to 200 µs. An attentive node, as the self-check's are,
// looks for requests, too, and sleeps only once nothing has come for 50 ms: it takes a whole processor while it is used, and notes when requests
// come to some microseconds.
//
// All is drawn from one seed, by a source for each of service times, delays and faults: the nth draw of each is the same in every run, whatever
// the others are. Which request it meets depends on the order in which they come.
//
// # Counts
//
// Every request counts once: under get, set or del if it was executed as such (whether found, stored or refused for want of
// memory), an MGET and an MSET as one get and one set, and under other if not. INFO commandstats shows the totals, INFO peers a line for each client address; stats (cmd_get,
// cmd_set, cmd_delete, cmd_other) and stats peers are the same for memcached:
//
//	peer_127.0.0.1:53412:get=10,set=3,del=0,other=1
//	STAT peer_127.0.0.1:53412 get=10,set=3,del=0,other=1
//
// After 100,000 addresses further ones are counted together, as peer_others.
//
// # Child processes
//
// A [Fleet] is a set of nodes that run as child processes of this one. Each prints "ready HOST:PORT" and then obeys the lines
// that come in on its standard input, answering each with "ok" or "error" and the reason:
//
//	stall 1s       stand still from now on, for that long
//	delay TIMES    delay replies from now on, as ParseTimes reads it; 0s ends it
//	flush          forget all keys
//	quit           end
//
// The end of that pipe ends the node, so nodes do not outlive their parent, however it ended. They run in process groups of
// their own: an interrupt from the terminal reaches the parent only, which is to drain before it lets them go.
package cachenode
