// Package run describes what a phase ran against and was asked to do: its target, its dataset and its load, as named in a result. Results can
// only be compared if these are equal.
package run
