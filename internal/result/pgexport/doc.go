// Package pgexport writes runs to a PostgreSQL database, where a team can query and graph them. docs/history.md describes the tables. They are in a
// schema of their own, loadgen, which the first push creates.
//
// A run is written in one transaction, completely or not at all. Pushing it again changes nothing, so a push that was cut off can be repeated. Every
// statement has a timeout, here and on the server.
package pgexport
