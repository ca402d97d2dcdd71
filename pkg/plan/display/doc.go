// Package display is what a plan wants shown of its experiment: tables and charts, as data. Their expressions are text, which package table evaluates
// over results.
package display
