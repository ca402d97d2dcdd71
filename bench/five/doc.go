// Package five runs the five published benchmarks that loadgen began with, each as a plan on real servers, and makes one page of them: what each asked,
// its own figures beside ours, and what its numbers could not carry.
//
//	make five                  all five; about half an hour
//	make five ONLY=hydra       one of them
//
// The servers are those of the tests; what is missing is left out, and said.
package five
