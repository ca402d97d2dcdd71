// Package plan describes, as data, the tables and charts that a plan wants of its experiment. Their expressions are text, which package expr
// evaluates over results.
package plan
