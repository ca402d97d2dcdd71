// Package words says in English what the parts of a run's result come to: facts of a run, a phase and an op, and the marks of doubt behind
// figures. All forms of report use the same words and digits.
package words
