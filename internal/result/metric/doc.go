// Package metric holds the one list of the numbers that a run's phases, ops and seconds have: the name, unit, kind and description of each. The name is
// the path in the JSON, so it also says where the number is in the structs of package run. Text, page, Markdown, CSV, tables, comparisons and the export to PostgreSQL read it; package run has the numbers themselves, and is the JSON.
//
// # Adding a figure
//
//  1. Give the struct in package run a field, and have package judge fill it.
//  2. Add its line to metrics.tsv: to the figures if scenarios and their steps have it, too, otherwise to those of an op; to those of a phase if it is
//     about a phase as a whole. Columns are name, unit, meaning, whether experiments compare by it (named, usually), the line of a report that quotes
//     it (rate, volume), the text after it there, its name in a sentence, and share for a quotient in another unit.
//  3. Add its path and type to paths.tsv, from which [Paths] reads them; unit and sentence come from metrics.tsv. `go test ./internal/result/... -update`
//     rewrites the schema's golden file.
//
// It then is in asserts and tables with its unit, in PostgreSQL as a row of figures, phase_figures or series_figures, and in reports and comparisons if
// its line says so ([Line], [Compared]). A test fails for a number that is not listed.
package metric
