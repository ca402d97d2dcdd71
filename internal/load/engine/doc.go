// Package engine executes steps on this machine: it is the worker.
//
// An [Engine] divides its sessions between loops. A loop is one goroutine that owns everything its sessions need: op states, timers, the
// recorder, and a transport that moves requests. Loops share nothing, so they take no lock and touch no channel per op.
//
// # Executors
//
// The same loop runs over five transports:
//
//   - wire, for a driver.Wire. Over epoll, with non-blocking sockets and a locked OS thread, this is the event loop executor. Over pipes, with a
//     goroutine that reads and one that writes for each connection, it is the blocking executor, and carries TLS. Package sockets has both.
//   - blocking, for a driver.Dialer: one goroutine for each client, to which the loop hands requests. This is the blocking executor.
//   - thread, for a localfile.Driver: the loop's own thread works on the files.
//   - timed, for a driver.Timed: nothing is sent; the loop's own timers complete requests. Either executor can carry it.
//   - inside, for a cache that another target is read through: it is in the loop, which answers from it in its next wait.
//
// If a phase has several targets, a joint combines their transports.
//
// # Ways
//
// A way carries an op out from start to end. Each step has one, chosen when the step is prepared (way.go):
//
//   - programs: each op has a state, and its program decides what to ask and how the op ends. Any op over any transport; the reference.
//   - runs, for plain ops over wire: a place in the queue of replies, and no state. Followed runs are the same for ops whose results are compared with
//     what was acknowledged.
//   - quorum, for ops over epoll that ask all endpoints of their key at once: those that a session starts together share a batch.
//   - thread, which is its own transport: every op is one request there.
//
// The other ways do and count exactly what programs would: tests compare the snapshots byte for byte. A scenario's ops use programs or thread.
//
// One place writes a connection's requests (writer.go, output.go) and one reads its replies (reader.go). The reader hands the way every reply whose
// request is still awaited.
//
// # Files
//
// The files are in groups, from top to bottom: steps (what a worker is told to do), ways and feeds (how ops begin and end), wire (requests and replies
// as bytes), blocking, files, and the loop with what all share. A file names only package-level types, functions and constants of its own group or below;
// internal/lint lists the groups, and the exceptions with their reasons. Methods and fields of a value that a file was given may lead upwards.
//
// Words of this package:
//
//	group    the loops of a phase and everything that they have open
//	side     one of a phase's targets, as this worker reaches it
//	lane     what a loop has for one of its phase's targets
//	joint    the transports of a loop whose phase has several targets
//	feed     where a loop's next op comes from and when it is due: closed, open, a trace
//	tape     the reader of a trace: those of its lines that are for one loop
//	scenes   the scenarios under way
//	outlet   how the bytes of a wire leave, and when
//	said     redacts keys and values from a server's error messages
//	sheet    a template of many equal requests, stamped with keys and values
//	seal     to hand over the counts of an interval that has ended
//	hold     to keep the runtime from preempting a loop while a load is measured
//	gate     what a policy's limits still allow a loop
//
// # Time
//
// Time is read here and nowhere else, from one monotonic clock whose zero is the run's start: once for each turn of the loop, once after
// each read that brought bytes and once before each batch of writes. An op's end is the time of the read that completed it. Its start is the
// time before the write that carried its first request. Its due time comes from the feed. Tests replace clock and poller and run the same loop
// in virtual time. A sleeping thread wakes late, so a loop watches the clock for the last moments before an op of an open load is due.
//
// Compare each timestamp with the worker's lease before starting or sending anything: a process that was stopped for long then stops by itself
// when it wakes.
//
// The goroutines of a pipe take their own timestamps, right before a write and right after a read. The hand-over between them and the loop
// therefore counts as lag and not as service.
//
// # Threads
//
// An event loop's thread is locked to its goroutine, and GOMAXPROCS is at least one more than the number of loops. So a loop may keep its
// processor for longer than the runtime likes: its waits begin as raw system calls of up to five milliseconds, and while a load is measured the
// runtime cannot preempt it (hold.go). Other goroutines still run and their timers fire. Only stopping the world has to wait, and everything
// waits with it: up to a second for a loop that is held. A raw wait delays nothing, since the runtime's preemption signal ends it: stopping the
// world took 20 µs (median of 200; p90 43 µs) beside a loop that waits raw for 400 µs again and again, 20 µs (47 µs) beside one that waits
// through the scheduler and 20 µs (30 µs) beside one that does not wait; a timer of 2 ms was late by 139, 148 and 133 µs. Two things stop the
// world: the garbage collector, which is off while a load is measured, and the engine itself between steps.
//
// What the hold is for: gets at half of the closed maximum with Poisson arrivals, 1.5 s a run, pinned, two processors of a shared machine; medians
// over the quiet ones of alternating runs, without and with hold and priority (nice −20): lag p99 31 and 23 µs, p99.9 800 and 63 µs.
//
// # Pressure
//
// A connection has at most 64 + pipeline requests outstanding. One more is refused, and its program goes on without it. A request that timed out
// keeps its place in the queue of replies, so that later replies still match their requests; its own reply is discarded. A connection that
// brought nothing for twice the timeout while replies were owed is opened again, after about 10 ms. While an endpoint refuses connections, one of
// each loop tries every 50 ms, and the others follow it. An op that fails before any of it could be sent holds its slot for 10 ms, or until its
// session has a connection again, so that a dead target does not become a busy loop.
package engine
