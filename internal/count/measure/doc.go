// Package measure counts: samples go into a [Totals], Totals merge into Totals.
//
// Everything in a Totals is an integer, and every field merges by sum, minimum or maximum. Merging is therefore associative and commutative, with the
// empty Totals as identity: any partition of the same samples, merged in any order, encodes to the same bytes. There is one exception: with more than
// 32 different error texts, which texts are kept and their counts depend on the partition, within the bounds that [Errors] gives. Intervals, event
// loops and workers are all combined this way. Intervals are never subtracted from one another.
//
// # Two ledgers
//
// Ops:      due = ok + miss + conflict + quorum_failed + timeout + error + shed + in_flight.
// Requests: sent = answered + moved + ask + timeout + error + in_flight, per endpoint and verb; refused beside it.
//
// Each side is counted independently: due by the pacer (AddDue), outcomes by the recorder (Record), in_flight by the executor as it takes and frees
// slots. [Totals.CheckValid] compares them.
//
// # Binary form
//
// Numbers are varints of encoding/binary in the fewest bytes: zigzag where marked ±, otherwise unsigned. Times are nanoseconds on the run clock. A
// set has bit i for the i-th verb or outcome in driver's order, and leaves out what is empty; a set of verbs is a number, one of outcomes a byte.
// Each state has exactly one form, and the decoders accept no other. Package hist documents the form of a Hist.
//
// Snapshot:
//
//	+------------+------+-----------+----------------------+--------+-----------+--------+----------+--------+
//	| version 1B | step | seq first | seq last − seq first | ± from | to − from | has 1B | Counters | Totals |
//	+------------+------+-----------+----------------------+--------+-----------+--------+----------+--------+
//	| Samples, if bit 1 of has is set; bit 0 marks the last snapshot of its step                        |
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
//	| version 1B | verbs    | per verb: due, a count per outcome, ± in_flight | Requests |
//	+------------+----------+-------------------------------------------------+----------+
//
// Totals:
//
//	+------------+----------+--------------+------------+--------------+---------+-----------+-------------+
//	| version 1B | ± origin | digest 8B LE | reconnects | late replies | foreign | misplaced | another run |
//	+--------+-------------+------+--------+----------+-----------+---------+-----------+-------------+------+
//	| stalls | ± max stall | Span | Errors | Requests | endpoints | away per endpoint, up to the last that is not 0 |
//	+--------+-------------+------+--------+----------+-----------+-----------------------------------------+
//	| verbs |
//	+-------+------+-----------+---------------------------------------+---------------------------------+
//	| per verb: Op | scenarios | per scenario: Op, steps, per step: Op | time: Bins, or 0                |
//	+--------------+-----------+---------------------------------------+---------------------------------+
//	| lost: Bins, or 0 | waited: Hist | Cache | events | per event: times and, unless 0, ± first, last − first |
//	+------------------+--------------+-------+--------+-------------------------------------------------------+
//	| rare 1B | Versions, if bit 0 is set | Connections, if bit 1 is set |
//	+---------+---------------------------+------------------------------+
//
// Connections:
//
//	+-----------+--------+---------+---------+------+--------+----------+--------+----------------+
//	| attempted | opened | refused | renewed | lost | before | ± making | ± open | Hist per stage |
//	+-----------+--------+---------+---------+------+--------+----------+--------+----------------+
//
// Versions. Examples of lost writes are in the order of when they were acknowledged, the last one first, and then of their keys:
//
//	+------+---------+-------+-------+--------+------+-------+-----------+-----------------------------------------+
//	| keys | missing | older | newer | unread | gets | stale | backwards | stale by one version, two, three, more  |
//	+------+---------+-------+-------+--------+------+-------+-----------+-----------------------------------------+
//	| age: Hist | examples 1B | per example: ± acknowledged, length of the key 1B, its bytes, version, version found        |
//	+-----------+-------------+-------------------------------------------------------------------------------------------+
//
// Cache; with nothing in it, a 0 alone:
//
//	+------+------+------+--------+-------+-----------+-----------+---------+--------------+----------+-----------+
//	| 1 1B | gets | hits | misses | loads | load time | coalesced | blocked | blocked time | uncached | evictions |
//	+------+------+------+--------+-------+-----------+-----------+---------+--------------+----------+-----------+
//	| cleared | caches | most loads | ± entries | ± bytes |
//	+---------+--------+------------+-----------+---------+
//
// Span; an empty one is only its first number:
//
//	+----------+---------+--------------+--------------+--------+-------------+--------+
//	| sessions | ± first | ± last first | ± first last | ± last | ± first out | ± turn |
//	+----------+---------+--------------+--------------+--------+-------------+--------+
//	| losers | ± lost from |
//	+--------+-------------+
//
// Errors, texts ascending:
//
//	+-------+---------+---------------------------------------+
//	| total | kept 1B | per text: length 1B, bytes, its count |
//	+-------+---------+---------------------------------------+
//
// Requests, only those that are not zero, ordered by endpoint, then verb; skipped is the number of zero ones before each.
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
//	| Growth, if bit 1 is set | Split, if bit 2 is set: write Hist, sync Hist                |
//	+-------------------------+--------------------------------------------------------------+
//	| checks, if bit 3 is set 1B | per check up to the last that failed: how often it did    |
//	+----------------------------+-----------------------------------------------------------+
//	| stages, if bit 4 is set, of a verb only | the first one, from 0 | an Op per stage from it |
//	+-----------------------------------------+-----------------------+-------------------------+
//	| wasted keys, if bit 5 is set                                                           |
//	+----------------------------------------------------------------------------------------+
//
// Keys:
//
//	+-----+---------------------+-------------+-------------+-------------------+-------------------+
//	| due | a count per outcome | ± in_flight | outcomes 1B | per outcome: Bins | the same by turns |
//	+-----+---------------------+-------------+-------------+-------------------+-------------------+
//
// Bins are 2^shift ns wide. Only those that are not empty are written, ascending; they end where the counts add up to ends.
//
//	+----------+------+---------+-------+---------+-------+----
//	| shift 1B | ends | skipped | count | skipped | count | …
//	+----------+------+---------+-------+---------+-------+----
//
// Growth: bins are 2^shift ordinals wide, written up to the last that is not empty. Either shift is 0, or there are more than 64 bins.
//
//	+----------+---------+---------------------------------------+
//	| shift 1B | bins 1B | per bin: failed, Hist of answered ops |
//	+----------+---------+---------------------------------------+
//
// Scenarios, and the steps of one, are sets like that of verbs: one number each.
//
// The version, 13, changes with the form, so also whenever a verb, an outcome, a cause or a class is added. It does not when a bit of rare is: forms
// without what it stands for stay as they are, and decoders refuse a bit that they do not know.
package measure
