// Package display describes, as data, the tables and charts that a plan wants of its experiment. Their expressions are text, which package table
// evaluates over results.
package display
