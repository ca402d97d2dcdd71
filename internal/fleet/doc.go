// Package fleet gets a run its workers: one in this process, one in a process that it starts, or those that come from elsewhere. All are
// used the same way, as a [worker.Member].
package fleet
