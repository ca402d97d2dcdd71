// Package tables makes the tables of experiments and the text around them: cells and notes, comparisons with a baseline, and reasons that several
// runs share.
package tables
