// Package five runs the five published benchmarks that loadgen began with, each as a plan on real servers, and makes one page of them: the question
// of each, its own figures beside ours, and the conclusions that its numbers could not support.
//
//	make five                  all five; about half an hour
//	make five ONLY=hydra       one of them
//
// The servers are those of the tests. A benchmark whose servers are missing is left out, and the page says so.
package five
