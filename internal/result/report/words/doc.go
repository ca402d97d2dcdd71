// Package words puts the parts of a run's result into English: facts of a run, a phase and an op, and the marks of doubt after figures. All forms of
// report use the same words and digits.
package words
