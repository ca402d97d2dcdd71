// Package experiment compares variants by what their repetitions measured.
//
// A [Sample] holds one metric of one variant: for each repetition the values of its intervals, or a single value where the load was too
// short to be cut. Values within a repetition are correlated, so nothing here takes them for independent: they are averaged into blocks
// that are long beside the autocorrelation, and blocks are what is counted, resampled and ranked.
//
// # What is called a difference
//
// [Compare] calls a difference one only if both hold:
//
//   - the 95 % confidence interval of the ratio of means excludes 1. It is studentised and from resampled blocks, so it knows the noise
//     within repetitions (Hall, The Bootstrap and Edgeworth Expansion, 1992, §3.5; Carlstein, Ann. Statist. 14, 1986);
//   - the ratio is further from 1 than twice the spread between restarts, and further than Student's test at 5 % on the means of
//     repetitions wants, which is more where there are fewer than four of each. A restart draws a memory layout, a hash seed, a set of
//     connections anew, and moves the mean by more than an interval's noise tells (Mytkowicz et al., ASPLOS 2009; Kalibera and Jones, ISMM
//     2013).
//
// Otherwise no difference was shown, which is not to say that there is none: the [Comparison] states the smallest one that these
// repetitions would have found nine times in ten.
package experiment
