// Package table evaluates expressions over a [run.Run].
//
// An expression is HCL and sees the result under the paths of its JSON (docs/result.md): phase.get.op.get.response.p99, or
// phase["get"].op["get"].response["p99"]. Quantities are numbers in base units; plan.Functions turns text such as "20ms" into such
// numbers. [Check] finds what cannot be meant before anything is run, by evaluating with values that are unknown but typed.
//
// A null anywhere in what an expression names makes its result null, with the null's reason. Nulls are looked for before the
// expression is evaluated, since HCL takes a null operand for a mistake of the author's.
package table
