// Package lint holds the module's rules that no compiler checks, as tests over its source: which package may import which, where goroutines start and
// the clock is read, what has a doc comment, which modules may be required, and that every plan in a file or a page is valid.
//
// A rule is a function from the module to findings, one per line. Each rule runs twice: over this module, where it must find nothing, and over
// testdata/RULE.txtar, a small tree that breaks it, where it must find what the tree's file "want" lists. An exception is an entry in the table
// beside its rule, with a reason. An exception that nothing needs any more is a finding, too.
package lint
