// Package lint holds the rules of this module that no compiler checks, as tests over its source: which package may import which,
// where goroutines start and the clock is read, what has a doc comment, which modules may be required, and that every plan in
// a file or a page is one.
//
// A rule is a function from the module to findings, a line each. It is run twice: over this module, where it has to find
// nothing, and over testdata/RULE.txtar, a small tree that breaks it, where it has to find what stands in the tree's file "want".
// An exception is an entry in the table beside its rule, with a reason; one that nothing needs any more is a finding, too.
package lint
