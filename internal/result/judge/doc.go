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
// # Scores and belief
//
// Near the largest rate that holds, chance decides whether a level holds. How many of its ops were slow says more: a level's score is the log odds of
// a slow op, less those that the objective allows, of the worst objective and op. A score of 0 or less has held. From the scores the search computes
// how probable it is, for each rate, that it is the largest that holds: see belief. How fast the score grows with the rate, and by how much levels
// differ, is learnt at the same time.
//
// Short levels seek a bracket. Then longer ones measure at the median of the belief and to both sides of it. Once the central 95 % are within the
// precision, or the time is nearly spent, a fresh and longer level tries their lower end. If it holds, its rate is the answer; if not, the next is
// tried below it. Levels begin with an empty queue, which lets a limit L hold at a rate up to about 1 + L/T too high for T seconds: the lower end is
// divided by that.
//
// # What says nothing
//
// A level that the generator could not offer says nothing about the target, and is repeated. The third above every rate that it could offer makes the
// lowest of them the generator's limit; a level there that tells something lifts it.
//
// # The knee
//
// Beyond the knee, more load brings little more throughput and much more waiting. The knee is defined as the rate with the greatest power,
// throughput divided by mean response time (Giessler et al., Free Buffer Allocation, Computer Networks 2, 1978; Kleinrock, Power and
// Deterministic Rules of Thumb, ICC 1979; Jain, The Art of Computer Systems Performance Analysis, 1991, §3.3). This needs no scale, no limit
// and no chord to a last point whose latency only reflects how long the overload lasted. For M/M/1 the knee is at half the capacity, for M/D/1
// at 2 − √2 = 59 % of it.
package judge
