// Package runner provides a run's workers: one in this process, one in a child process, or workers that come from elsewhere. All are used alike, as a
// [worker.Member].
package runner
