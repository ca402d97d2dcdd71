// Package report shows runs and experiments to people. [Text] and [Experiment] write the report that the terminal shows at the end, [Markdown], [CSV]
// and [JSON] are for other tools, [List] has a line for each of several runs, and [Progress] shows a run in progress. Package page shows them with
// charts.
//
// Text is plain and 100 columns wide, but for doubts, a line each; on a narrower terminal it has that width, down to 80, and leaves out columns. Quantities that may be published
// are written in full (83,214/s); progress and lists round to three digits with SI prefixes (83.2k/s). All latencies of an op share one unit, so that
// its rows can be compared at a glance.
package report
