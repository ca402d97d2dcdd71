// Package history writes runs to a PostgreSQL database, where a team can query and graph them. The tables are described in
// docs/history.md; they are in a schema of their own, loadgen, which the first push makes.
//
// A run is written in one transaction, whole or not at all, and once: pushing it again changes nothing, so that a push which was cut off can
// be made again. Every statement has a deadline, here and on the server.
package history
