// Package engine executes steps on this machine: it is the worker.
//
// An [Engine] divides the sessions it was assigned between loops. A loop is one goroutine that owns everything its sessions need:
// op states, timers, the recorder, and a transport that moves requests. Nothing is shared between loops, so nothing is locked,
// and no channel is touched per op.
//
// # Executors
//
// The same loop runs over four transports:
//
//   - wire, for a driver.Wire. Over epoll, with non-blocking sockets and a locked OS thread, this is the event loop executor. Over pipes, with a
//     goroutine that reads and one that writes for each connection, it is the blocking executor, and carries TLS. Package sockets has both.
//   - blocking, for a driver.Dialer: one goroutine for each session and endpoint, which the loop hands requests to. This is the
//     blocking executor.
//   - thread, for a localfile.Driver: the loop's own thread works on the files.
//   - timed, for a driver.Timed: no transport at all; the loop's own timers complete requests. Either executor can carry it.
//
// # Ways
//
// How an op is carried out from its start to its end is a way. A step has one, chosen when it is prepared (way.go):
//
//   - programs: each op has a state, and its program decides what is asked and how it ends. Any op over any transport; the reference.
//   - runs, for plain ops over wire: a place in the queue of replies, and no state.
//   - quorum, for ops over epoll that ask all endpoints of their key at once: those that a session starts together share a batch.
//   - thread, which is its own transport: all ops are one request there.
//
// What the others do and count is what programs would: tests hold the snapshots equal, byte for byte. A scenario's ops go the way of programs or thread.
//
// A connection's requests are written in one place (writer.go, output.go) and its replies read in one (reader.go), which hands those to requests that
// are still awaited to the way.
//
// # Time
//
// Time is read here and nowhere else, from one monotonic clock whose zero is the run's start: once for each turn of the loop, once after
// each read that brought bytes and once before each batch of writes. An op's end is the time of the read that completed it; its
// start, the time before the write that carried its first request; its due time, what the feed says. Tests replace clock and poller
// and run the same loop in virtual time. A sleeping thread wakes late, so before an op of an open load is due a loop looks at the clock
// instead.
//
// Whoever has taken a time and is about to start or send something compares it with the worker's lease first: a process that was stopped
// for long stops by itself when it wakes.
//
// The goroutines of a pipe take the times themselves, right before a write and right after a read, so that the way between them and the
// loop counts as lag and not as service.
//
// # Threads
//
// An event loop's thread is locked to its goroutine, and GOMAXPROCS leaves the rest of the process a processor more than there are loops. So
// a loop may keep its own for longer than the runtime likes: its waits begin as raw system calls of up to five milliseconds, and while a
// load is measured the runtime cannot preempt it (hold.go). Other goroutines run and their timers fire meanwhile. Only who stops the world
// has to wait, and the world with it: for a loop that is held, up to a second. A raw wait costs nobody anything, since the signal that asks
// the goroutine to give way ends it: stopping the world took 20 µs (median of 200; p90 43 µs) beside a loop that waits raw for 400 µs again
// and again, 20 µs (47 µs) beside one that waits through the scheduler and 20 µs (30 µs) beside one that does not wait; a timer of 2 ms was
// late by 139, 148 and 133 µs. What stops the world is the garbage collector, which is off while a load is measured, and what the engine
// itself does between steps.
//
// What the hold is for: gets at half of the closed maximum by Poisson, 1.5 s a run, pinned, two processors of a shared machine; medians of runs in
// turn of those in which it was quiet, without and with hold and priority (nice −20): lag p99 31 and 23 µs, p99.9 800 and 63 µs.
//
// # Pressure
//
// At most 64 + pipeline requests are outstanding on a connection; one more is refused, and its program goes on without it. A request
// that timed out keeps its place in the queue of replies, so that the replies behind it still find theirs; its own is then discarded.
// A connection that brought nothing for twice the timeout while replies were owed is opened again. Reconnects back off from 10 ms
// to 1 s. An op that fails before anything of it could be sent holds its slot for 10 ms, so that a dead target is
// not a busy loop.
package engine
