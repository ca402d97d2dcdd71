// Package conditions is what a phase was run against and asked to do: its target, its dataset and its load, as a result names them. They are what
// has to be equal where results are compared.
package conditions
