// Package experiment compares variants by what their repetitions measured.
//
// A [Sample] holds one metric of one variant: for each repetition the values of its intervals, or a single value if the load was too short to be
// divided. Values within a repetition are correlated, so nothing here treats them as independent: they are averaged into blocks that are long
// compared with the autocorrelation, and blocks are what is counted, resampled and tested.
//
// # What is called a difference
//
// A difference counts only if all of these hold; [Compare] checks the first two:
//
//   - the 95 % confidence interval of the ratio of means excludes 1, and p is below 5 %. The interval is studentised and from resampled blocks, so it
//     reflects the noise within repetitions (Hall, The Bootstrap and Edgeworth Expansion, 1992, §3.5; Carlstein, Ann. Statist. 14, 1986);
//   - the ratio is further from 1 than twice the spread between restarts, and further than Student's test at 5 % on the means of repetitions requires,
//     which is more with fewer than four of each. A restart draws a new memory layout, hash seed and set of connections, and moves the mean by more
//     than an interval's noise shows (Mytkowicz et al., ASPLOS 2009; Kalibera and Jones, ISMM 2013);
//   - p of Welch's test, adjusted by [Holm] for the number of comparisons in the experiment, is below 5 %: the more comparisons, the more chance findings.
//
// Otherwise no difference was shown, which does not mean that there is none: the [Comparison] states the smallest one that these repetitions would
// have found nine times in ten, by the first two criteria.
package experiment
