// Package report shows runs to people: [Text] is the summary at the end of a run, [HTML] a page with charts, [Markdowns], [CSV] and [JSON]
// are for other tools, [List] is a line for each of several runs, and [Progress] what is to be seen while one is going on.
//
// Text is plain, at most 100 columns wide and the same wherever it goes. Quantities that may be published are written out
// (83,214/s); progress and lists round to three digits with SI prefixes (83.2k/s). All latencies of an op share one unit, so that
// its rows can be compared by eye.
package report
