// Package worker is what passes between a coordinator and its workers, whether these are in its own process or on another machine: the calls that a
// [Worker] answers, and the data they take and return.
//
// A worker is told the plan once, in an [Assignment]. Then it carries out one [Step] after another: it says that it is [Ready], loads, hands each
// second's snapshot to a [Sink], and ends with a [Final]. A [Final] and a [Loss] stand in the result as they are.
package worker
