// Package cachenode is the built-in target: a cache node that speaks a part of Redis' protocol, of memcached's or of Hydra Cache's, keeps to a memory
// bound, stalls or answers late on request, and counts the requests that it received. A plan without endpoints runs against it, other servers are
// compared with it as the floor, and its counts verify loadgen's own.
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
//	COMMAND [COUNT|DOCS|INFO …]    QUIT
//
// They answer as Redis 7 does, in RESP2 until HELLO asks for RESP3. Everything else is "-ERR unknown command"; other options are refused. All values
// are strings; MEMORY USAGE is an entry's share of the node's bound. Requests are arrays of bulk strings, of 1,024 arguments at most, or inline: a
// line of at most 64 KiB, whose words may be quoted. Requests that arrive together are answered together. An expired key cannot be read, but DBSIZE
// counts it until somebody has looked for it. SCAN visits keys in the order in which they came, and visits a key that is there all the time exactly
// once.
//
// # Commands of memcached
//
//	mg key [v k s t f O…]      ms key size [k O… F0 T…]   md key [k O…]
//	mn                         version                    stats [settings|peers]
//	flush_all [0]              quit
//
// They answer as memcached 1.6 does; version says that this is another program. Everything else is "ERROR", another flag "CLIENT_ERROR invalid flag".
// There is one key space, without client flags, so F takes only 0, and without passwords, so the node listens only on the loopback. T takes seconds,
// or a date beyond 30 days of them. If the end of a request is unclear (a line of more than 2,048 bytes, or data that is longer or shorter than
// announced), the connection ends after the error.
//
// # Hydra Cache
//
//	PUT /key, GET /key, DELETE /key      GET /registry    GET /storage    GET /dump
//
// They answer as the servers of Hydra Cache do, of 2011 or of one of two builds of April 2009, over HTTP with the same bytes; testdata/hydra holds recordings
// of those. A value has a version in front of it: the address of the node that wrote it and a counter. A PUT names the version that its client knew,
// and is a conflict (409) unless that is as new as every copy it meets. The nodes of a space copy values among themselves, on the same ports: a PUT
// with W > 1, a DELETE with W > 1, and a GET that does not find enough copies here, go to the node's neighbours, which are those within N − 1 steps
// of it on a ring of hashed addresses. The node then waits for N answers, however many it needs, or until the wait is over; nodes without the value
// do not answer a GET. So a miss takes the whole wait, and so does every PUT while fewer than N neighbours are there. If fewer than W have answered,
// the PUT fails, and stays where it has arrived. Three I/O threads do the waiting, to which connections are assigned in turn: an operation that waits
// on one connection keeps a third of the others waiting. A thread replies to all that it has read once it has carried all of it out, and closes those
// connections to which it comes back after more than 3 s, without a message, like those that are silent for 3 s.
//
// # Memory
//
// An entry costs the bytes of its key and value, plus 96. Before the sum of all entries would exceed the bound, the least recently used entries are
// evicted, in exact order over all databases. An entry that alone exceeds the bound is refused with "-OOM" or "SERVER_ERROR object too large for
// cache". A value that is being sent keeps its room until it is sent, even if it is replaced or deleted meanwhile. If that leaves too little room, a
// SET is refused the same way.
//
// Connections are limited (10,000), and so are request sizes, unfinished requests and unread replies. A client is disconnected if it takes none of a
// reply for 30 s, or does not continue a request that it has begun for as long; INFO faults counts such clients as connections_too_slow. Whatever
// clients do, the process takes no more than 7 times the bound on entries, 48 KiB for each connection and 256 MiB.
//
// # Faults
//
// A delay holds each reply back for a while after its request arrived: always the same, or drawn for each request. It only adds to latency: requests
// that arrive meanwhile are accepted, and each is answered that much after its own arrival. Replies never overtake each other: one whose delay is
// over waits for earlier ones on its connection. During a stall the node receives and sends nothing; afterwards it answers all requests that have
// come. Delays are as exact as the kernel's timers, stalls to a millisecond. A log of delays has a line for each request, in the order in which they
// were drawn:
//
//	connection,verb,arrival_ns,delay_ns
//	3,get,81920331,200000
//
// A bandwidth limits what all connections together receive, and what they send, in bytes of the protocol. It is exact over times that are long
// compared with 10 ms. Connections take turns.
//
// Some GETs, SETs and DELs get no answer (drop), or their connection is closed (FIN) or reset (RST) instead. They are carried out and counted like
// any others, but their clients get no answer. Replies come in request order, so after a drop a connection stays silent until its client gives it up.
// INFO faults counts requests dropped, requests unanswered (those dropped and all that followed them), and connections closed and reset.
//
// A service time makes the node a queue with one server. It works on the GETs, SETs and DELs of all connections one at a time, in order of arrival,
// and takes the given or drawn time for each. The time of each request then follows from the arrivals and the draws, c(i) = max(a(i), c(i−1)) + s(i),
// independently of the client. INFO queue has both for the first 100,000 requests, in nanoseconds since the node was made:
//
//	visit_0:arrival_ns=81920331,service_ns=200000
//
// Its replies leave on time to the microsecond: before each, a processor polls the clock for up to 200 µs. An attentive node, as in the self-check,
// also polls for requests, and sleeps only once nothing has come for 50 ms. It takes a whole processor while it is used, and notes arrivals to within
// a few microseconds.
//
// All draws come from one seed, with one source each for service times, delays and faults: the nth draw of each is the same in every run, independent
// of the others. Which request gets it depends on the order of arrival.
//
// # Counts
//
// Every request counts once: under get, set or del if it was executed as such (whether found, stored or refused for lack of memory), an MGET and an
// MSET as one get and one set, and under other if not. INFO commandstats shows the totals, INFO peers a line for each client address; stats (cmd_get,
// cmd_set, cmd_delete, cmd_other) and stats peers are the same for memcached:
//
//	peer_127.0.0.1:53412:get=10,set=3,del=0,other=1
//	STAT peer_127.0.0.1:53412 get=10,set=3,del=0,other=1
//
// After 100,000 addresses, further ones are counted together as peer_others.
//
// # Child processes
//
// A [Fleet] is a set of nodes that run as child processes of this one. Each prints "ready HOST:PORT" and then obeys the lines on its standard input,
// answering each with "ok" or "error" and the reason:
//
//	stall 1s       stall from now on, for that long
//	delay TIMES    delay replies from now on, as ParseTimes reads it; 0s ends it
//	drop SHARE     leave this share of requests unanswered from now on, 0 to 1; 0 ends it
//	flush          forget all keys
//	peers A B …    these are nodes of the same Hydra space
//	quit           end
//
// A node ends when that pipe does, so nodes do not outlive their parent, however it ended. They run in process groups of their own: an interrupt from
// the terminal reaches only the parent, which drains its load before it lets them go.
package cachenode
