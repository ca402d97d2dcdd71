// Package experiment compares variants by what their repetitions measured.
//
// A [Sample] holds one metric of one variant: for each repetition the values of its intervals, or a single value where the load was too
// short to be cut. Values within a repetition are correlated, so nothing here takes them for independent: they are averaged into blocks
// that are long beside the autocorrelation, and blocks are what is counted, resampled and tested.
//
// # What is called a difference
//
// A difference is called one only if all of these hold, of which [Compare] looks at the first two:
//
//   - the 95 % confidence interval of the ratio of means excludes 1, and p is below 5 %. The interval is studentised and from resampled blocks, so it knows the noise
//     within repetitions (Hall, The Bootstrap and Edgeworth Expansion, 1992, §3.5; Carlstein, Ann. Statist. 14, 1986);
//   - the ratio is further from 1 than twice the spread between restarts, and further than Student's test at 5 % on the means of
//     repetitions wants, which is more where there are fewer than four of each. A restart draws a memory layout, a hash seed, a set of
//     connections anew, and moves the mean by more than an interval's noise tells (Mytkowicz et al., ASPLOS 2009; Kalibera and Jones, ISMM
//     2013);
//   - p of Welch's test, adjusted by [Holm] for the number of comparisons in the experiment, is below 5 %: who compares often finds something.
//
// Otherwise no difference was shown, which is not to say that there is none: the [Comparison] states the smallest one that these
// repetitions would have found nine times in ten, by the first two.
package experiment
