// Package judge turns counts into a result and says how far that can be trusted.
//
// [NewPhase] turns the merged totals of a phase, a [Measured], into ledgers, rates and latencies, and judges them: each doubt is a reason that names
// the figures it affects. [FindWarmUp] decides how much of a load's beginning to leave out of its figures, [Measured.AddLevel] adds one stage or one
// try of a search, and [Shortfall] says how a step that must succeed completely fell short. [Series] and [Observation] collect a result's time series
// while the load runs.
//
// The output is plain data, described in package run.
//
// # The next rate of a search
//
// [Sum] decides which rate to try next in order to find the largest that holds: a function of the rates tried so far and their outcomes.
//
// Rates grow by the factor [Growth] until one fails. Then the search tries the geometric mean of the largest rate that held and the lowest
// above it that failed, until their ratio is at most 1 + precision. With n steps of the second kind the answer is within a factor of
// 2^(1/2ⁿ): 4 steps for 5 %.
//
// # Noise
//
// Disturbances make a level worse, hardly ever better. So the search believes a single try that held, whatever the outcomes of others, but a
// failure only after three tries, or two if the generator was the limit. A rate that the target was far from sustaining needs no second try.
// A disturbance may outlast these tries. So a failure without overload is believed only if a rate within [Growth] above it fails, too, and in
// the end one within [Spacing]. And the lowest failed rate is tried again while there is time, up to five times in all.
//
// # The knee
//
// Beyond the knee, more load brings little more throughput and much more waiting. The knee is defined as the rate with the greatest power,
// throughput divided by mean response time (Giessler et al., Free Buffer Allocation, Computer Networks 2, 1978; Kleinrock, Power and
// Deterministic Rules of Thumb, ICC 1979; Jain, The Art of Computer Systems Performance Analysis, 1991, §3.3). This needs no scale, no limit
// and no chord to a last point whose latency only reflects how long the overload lasted. For M/M/1 the knee is at half the capacity, for M/D/1
// at 2 − √2 = 59 % of it. Once the bracket is narrow enough, the search tries rates beside the knee until its neighbours are within [Spacing].
package judge
