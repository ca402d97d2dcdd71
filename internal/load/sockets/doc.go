// Package sockets moves bytes in and out: it connects to endpoints, over TLS if the target wants it, and reads and writes without waiting. It does
// not deal with requests, replies or ops.
//
// A [Poller] holds the sockets of one event loop. [Epoll] makes non-blocking system calls on the loop's own thread. [Pipes] has two goroutines for
// each connection, one that reads and one that writes, which is how TLS is carried. What the loop writes is handed over and leaves a little later, so
// those goroutines take the timestamps of reads and writes.
//
// A [Connector] makes connections for exchanges outside the load: a server's identity, a cluster's map.
package sockets
