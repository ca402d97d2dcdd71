// Package experiment compares variants by what their repetitions measured.
//
// # The run is the unit
//
// A value describes a whole run: its rate over the plateau, the arithmetic mean of its ops, a quantile of its merged histogram. A restart draws a new
// memory layout, hash seed and set of connections, and moves all seconds of a run together (Mytkowicz et al., ASPLOS 2009; Kalibera and Jones, ISMM
// 2013). So a thousand seconds of three runs are three independent values, and only the scatter of runs shows the effect of chance. Single seconds
// serve questions within one run: warm-up, drift, charts.
//
// # What is called a difference
//
// [Conclude] compares each variant with the baseline by round ([stat.NewRounds]) on the logarithms of their values, which makes a ratio of geometric
// means of a difference of means; by Welch's test if they were not interleaved. The 95 % confidence interval, p and its adjustment for the number of
// comparisons ([Holm]) all come from that one test. It takes [stat.LeastRounds] runs of each. A share, such as hit_ratio, is compared as it is, by
// difference. Quantiles are known to the width of a histogram's bucket, so the null hypothesis about them is not that they are equal, but that they
// differ by no more than that width: the interval is wider by as much on both sides. Where all runs of each side have the same value, the effect of chance is unknown, and there is no p.
//
// A difference is found if the adjusted p is below 5 % and the interval is beyond what the plan says matters. [Detectable] is the size at
// which that happens nine times in ten.
//
// A rate that the schedule of an open load sets is not a finding, since the plan asked for it.
package experiment
