// Package worker defines the interface between a coordinator and its workers, in the same process or on other machines: the calls that a [Worker]
// answers, and the data they take and return. It does no work itself: package engine loads, and package rpc carries the calls to other machines.
//
// A worker gets the plan once, in an [Assignment]. Then it carries out one [Step] after another: it says that it is [Ready], loads, hands each second's
// snapshot to a [Sink], and ends with a [Final]. Parts of [Final], and each [Loss], go into the result unchanged.
package worker
