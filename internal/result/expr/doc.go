// Package expr evaluates expressions over a [run.Run].
//
// An expression is HCL and refers to the result by the paths of its JSON (docs/result.md): phase.get.op.get.response.p99, or
// phase["get"].op["get"].response["p99"]. Quantities are numbers in base units; the functions of plans, dialect.Functions, convert text
// such as "20ms" to them. [Check] finds errors before anything is run, by evaluating expressions with unknown but typed values.
//
// If any figure that an expression refers to is null, the result is null, with the same reason. Nulls are found before the expression is evaluated,
// since HCL treats a null operand as an error.
package expr
