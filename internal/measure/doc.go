// Package measure counts: samples go into a [Totals], Totals merge into Totals.
//
// Everything in a Totals is an integer, and every field merges by sum, minimum or maximum. Merging is therefore associative and
// commutative with the empty Totals as identity: any partition of the same samples, merged in any order, encodes to the same bytes. One thing is
// apart: of more than 32 different error texts, which are kept and how often they are said to have come depends on the partition, within what
// [Errors] says.
// Intervals, event loops and workers are all combined this way, and differences between intervals are never taken.
//
// # Two ledgers
//
// Ops:      due = ok + miss + conflict + quorum_failed + timeout + error + shed + in_flight.
// Requests: sent = answered + moved + ask + timeout + error + in_flight, per endpoint and verb; refused beside it.
//
// The two sides of each are counted by different hands: due by the pacer (AddDue), outcomes by the recorder (Record), in_flight by
// the executor as it takes and frees slots. [Totals.CheckValid] compares them.
//
// # Binary form
//
// Numbers are varints of encoding/binary, of the fewest bytes: unsigned where nothing is said, zigzag where marked ±. Times are
// nanoseconds on the run clock. A set is a byte with bit i for the i-th verb or outcome in driver's order; what is empty is left
// out of its set. Each state has one form, and the decoders accept no other. A Hist is in the form of package hist.
//
// Snapshot:
//
//	+------------+------+-----------+----------------------+--------+-----------+--------+----------+--------+
//	| version 1B | step | seq first | seq last − seq first | ± from | to − from | has 1B | Counters | Totals |
//	+------------+------+-----------+----------------------+--------+-----------+--------+----------+--------+
//	| Samples, if bit 1 of has is set; bit 0 says that it is the last of its step                       |
//	+-------------------------------------------------------------------------------------------------------+
//
// Samples; ranks ascend:
//
//	+------+-------+----------------------------------------------------------+
//	| most | count | per op:                                                  |
//	+------+-------+----------------------------------------------------------+
//	| rank 8B LE | ± due | start − due | end − start | verb 1B | outcome 1B   |
//	+------------+-------+-------------+-------------+---------+--------------+
//	| bytes in + 1 | bytes out + 1 | code | length of the error 1B | its bytes |
//	+--------------+---------------+------+------------------------+-----------+
//
// Counters:
//
//	+------------+----------+-------------------------------------------------+----------+
//	| version 1B | verbs 1B | per verb: due, a count per outcome, ± in_flight | Requests |
//	+------------+----------+-------------------------------------------------+----------+
//
// Totals:
//
//	+------------+----------+--------------+------------+--------------+---------+--------+-------------+
//	| version 1B | ± origin | digest 8B LE | reconnects | late replies | foreign | stalls | ± max stall |
//	+------------+----------+--------------+------------+--------------+---------+--------+-------------+
//	| Span | Errors | Requests | verbs 1B | per verb: Op                                                |
//	+------+--------+----------+----------+-------------------------------------------------------------+
//	| scenarios | per scenario: Op, steps, per step: Op | time: Bins, or 0 | waited: Hist    |
//	+-----------+---------------------------------------+------------------+-----------------+
//
// Span, of which an empty one is its first number only:
//
//	+----------+---------+--------------+--------------+--------+-------------+--------+
//	| sessions | ± first | ± last first | ± first last | ± last | ± first out | ± turn |
//	+----------+---------+--------------+--------------+--------+-------------+--------+
//
// Errors, texts ascending:
//
//	+-------+---------+---------------------------------------+
//	| total | kept 1B | per text: length 1B, bytes, its count |
//	+-------+---------+---------------------------------------+
//
// Requests: of those that are not zero, in order of endpoint, then verb; skipped is the number of zero ones before it.
//
//	+-----------+------+-------------------------------------------------------------------------------------+
//	| endpoints | used | per used: skipped, sent, answered, timeout, error, refused, moved, ask, ± in_flight |
//	+-----------+------+-------------------------------------------------------------------------------------+
//
// Op:
//
//	+-----+---------------------+-------------+-------------------+----------+-------------+
//	| due | a count per outcome | ± in_flight | a count per cause | bytes in | bytes out   |
//	+-----+---------------------+-------------+-------------------+----------+-------------+
//	| lag Hist | service Hist per class | response Hist per class | acks 1B | Hist per ack |
//	+----------+------------------------+-------------------------+---------+--------------+
//	| kinds 1B | per kind: service Hist, response Hist                                       |
//	+----------+----+-------------------+-------------------+---------+----------------------+
//	| outcomes 1B   | per outcome: Bins | the same by turns | rare 1B | Keys, if bit 0 is set |
//	+---------------+-------------------+-------------------+---------+----------------------+
//	| Growth, if bit 1 is set                                                                |
//	+----------------------------------------------------------------------------------------+
//
// Keys:
//
//	+-----+---------------------+-------------+-------------+-------------------+-------------------+
//	| due | a count per outcome | ± in_flight | outcomes 1B | per outcome: Bins | the same by turns |
//	+-----+---------------------+-------------+-------------+-------------------+-------------------+
//
// Bins: the width is 2^shift ns; of the bins that are not empty, ascending; they end where the counts add up to ends.
//
//	+----------+------+---------+-------+---------+-------+----
//	| shift 1B | ends | skipped | count | skipped | count | …
//	+----------+------+---------+-------+---------+-------+----
//
// Growth: bins are 2^shift ordinals wide; those up to the last that is not empty. Shift is 0, or there are more than 64.
//
//	+----------+---------+---------------------------------------+
//	| shift 1B | bins 1B | per bin: failed, Hist of what answered |
//	+----------+---------+---------------------------------------+
//
// Scenarios, and the steps of one, are sets like that of verbs, of one number each.
//
// The version, 9, changes with the form, and so whenever a verb, an outcome, a cause or a class is added.
package measure
