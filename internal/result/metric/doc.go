// Package metric holds the one list of the numbers that a run's phases, ops and seconds have: the name, unit, kind, getter and description of each.
// Text, page, Markdown, CSV, tables, comparisons and the export to PostgreSQL read it; package run has the numbers themselves, and is the JSON.
//
// # Adding a figure
//
//  1. Give the struct in package run a field, and have package judge fill it.
//  2. Add its entry to the list here: of [Figures] if scenarios and their steps have it, too, otherwise of [Op]; of [Phase] if it is about a phase as
//     a whole.
//  3. Add its path and type to paths.tsv, from which [Paths] reads them; unit and sentence come from the entry. `go test ./internal/result/... -update`
//     rewrites the schema's golden file.
//
// It then is in asserts and tables with its unit, in PostgreSQL as a row of figures, phase_figures or series_figures, in reports if the entry names a
// [Line], and in comparisons if it says so ([Compared]). A test fails for a number that is not listed.
package metric
