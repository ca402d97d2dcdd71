// Package loadgenpb is the messages between a coordinator and its workers. All of it but this comment is generated from control.proto,
// which says what they mean; package rpc says how they are used.
package loadgenpb

//go:generate make -C ../../../.. proto
