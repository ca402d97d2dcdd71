// Package judge turns counts into a result and says how far that can be trusted.
//
// [NewPhase] turns the merged totals of a phase, a [Measured], into ledgers, rates and latencies, and judges them: each doubt is a reason that names
// the figures it affects. [FindWarmUp] decides how much of a load's beginning to leave out of its figures, [Measured.AddLevel] adds one stage or one
// try of a search, and [Shortfall] says how a step that must succeed completely fell short. [Series] and [Observation] collect a result's time series
// while the load runs.
//
// The output is plain data, described in package run.
//
// # Stages
//
// A result is made in stages, each a function of the ones before it:
//
//	counts    what a step left behind, and the part of it that is even   counts.go
//	rates     how fast ops were due and ended                            rate.go, offered.go
//	figures   the result, with a reason for each figure that is missing  figures.go
//	doubts    reasons not to believe figures                             doubts.go
//	verdict   the worst of them; of a search, what each level is worth   phase.go, level.go
//
// Package lint lists the files of each stage and holds them to this direction.
//
// # The next rate of a search
//
// [Bounds.Next] decides which rate to try next in order to find the largest that holds, and [Bounds.Sum] says what has been found: functions of the
// rates tried so far and their outcomes.
//
// A search begins with a closed load, which shows about how much the target does at most. The first rate is a [Cautious] part of that. Rates then
// grow by the factor [Growth] until one fails; if the first does not hold, they fall until one does.
//
// # Probabilistic bisection
//
// From then on the search keeps a belief: how probable it is, for each rate, that it is the largest that holds (Waeber, Frazier and Henderson,
// Bisection Search with Noisy Responses, SIAM J. Control Optim. 51(3), 2013). It tries the median of that belief, in the logarithm of the rate, and
// weighs the belief by the outcome. Near the largest rate, chance decides about an outcome. Far below it a level hardly ever fails, but when the
// machine is disturbed; far above it a level hardly ever holds. So with θ the largest rate, a level at rate r holds with the probability
//
//	P(r, θ) = false + (1 − false − lapse) / (1 + (r/θ)^(1/width))
//
// (a psychometric function, as in Watson and Pelli, QUEST: A Bayesian adaptive psychometric method, Perception & Psychophysics 33, 1983). Since
// lapse is far larger than false, a level that failed moves the belief less than one that held. The search ends once the central 95 % of the belief
// lie within the precision, and the rate that it answers has held in two of three tries.
//
// # What says nothing
//
// A level that the generator could not offer says nothing about the target, and does not change the belief. The search tries a lower rate and comes
// back. Above a rate where that has happened twice and which nothing has held, it does not go: the answer is then the generator's limit.
//
// # The knee
//
// Beyond the knee, more load brings little more throughput and much more waiting. The knee is defined as the rate with the greatest power,
// throughput divided by mean response time (Giessler et al., Free Buffer Allocation, Computer Networks 2, 1978; Kleinrock, Power and
// Deterministic Rules of Thumb, ICC 1979; Jain, The Art of Computer Systems Performance Analysis, 1991, §3.3). This needs no scale, no limit
// and no chord to a last point whose latency only reflects how long the overload lasted. For M/M/1 the knee is at half the capacity, for M/D/1
// at 2 − √2 = 59 % of it. At the end, if there is time, the search tries the rates of the curve at [Curve] of the answer, and rates beside the knee
// until its neighbours are within [Spacing].
package judge
