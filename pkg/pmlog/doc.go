// Package pmlog has layouts of logs in mapped files, built on package pmem. After a power loss they promise:
//
//   - What was acknowledged is there, byte for byte and in order. What is there was written. Of what was being written at the time, all or nothing is
//     there. Acknowledged means that the call returned without an error, in a mode of pmem that keeps data.
//   - Nothing from before a Clear comes back after it, and nothing that one recovery did not find turns up in the next.
//   - Bytes that are neither acknowledged nor what a crash leaves are ErrCorrupt; they are never skipped.
//   - After the first error of a region nothing more is acknowledged.
//
// The layouts:
//
//	append   records with length, checksum and number, one after another
//	array    slots, each with room for one value; writers of different slots do not wait for each other
//	channel  bare bytes, with their number in a side file
//	raw      bare bytes and no promise: the speed of the medium, as a bound for the others
//
// # Formats
//
// Integers are little-endian. A log has two copies of its header, in two pages. They are written one after the other, each until it is durable. So at
// any time at least one is whole, and once a call has returned, either will do. The records follow them.
//
//	0             128     4096             4224    8192
//	+-------------+-------+----------------+-------+------------+
//	| header copy | zeros | header copy    | zeros | records .. |
//	+-------------+-------+----------------+-------+------------+
//
//	0            8        9        10       11      12        16
//	+------------+--------+--------+--------+-------+---------+
//	|   magic    | layout | relaxed| length | clean | padding |
//	+------------+--------+--------+--------+-------+---------+
//	16     24       32           40    48      56           64     72      80      88         96     104     124     128
//	+------+--------+------------+-----+-------+------------+------+-------+-------+----------+------+-------+-------+
//	| salt | serial | generation | era | first | checkpoint | next | holes | slots | capacity | size | zeros | CRC32C|
//	+------+--------+------------+-----+-------+------------+------+-------+-------+----------+------+-------+-------+
//
// The magic is "LGPMLOG1", or "LGPMLOG2" for a grouped log. The serial number tells which copy is newer. The era grows with each recovery and each
// clear; the generation is the era of the last clear. The checkpoint is an offset. All records before it are durable, except for holes of them, and
// the last has the number next-1. The first record of the generation has the number first. The capacity is that of an array's slots, or of a
// channel's data; the size is the region's. The checksum covers the 124 bytes before it.
//
// A record of an append log begins at a multiple of the padding:
//
//	0       4        8     16     24        24+length
//	+-------+--------+-----+------+---------+
//	| check | length | seq | mark | payload |
//	+-------+--------+-----+------+---------+
//
// The length is the payload's, plus 2^31. The check is the payload's CRC32C, which is computed before the record has its place, combined by XOR with
// 32 bits mixed from the other three fields. The mark is the record's era, combined by XOR with a number that depends on the log's salt and the
// record's offset. One comparison thus tells a record from any other bytes, even from a copy of a record.
//
// In a grouped log, seq has 40 bits. The 24 above them are the record's lag: how many records before it were not known to be durable when it was
// stored. So if a record is missing and a later one is there, the lag tells whether a crash explains that: the missing one was being written at the
// same time, and the log ends before it. Otherwise it is ErrCorrupt.
//
// A record before the checkpoint may have any era of the generation; one after it must have the header's. So what a crash left unfinished is void
// from the recovery on, even if bytes written later complete it. Records committed by length have a first word (check and length) of zero until the
// rest of them is durable.
//
// A slot of an array log has room for two copies of its value, one after the other, each as large as a record whose payload has the slot's capacity.
// A value is a record whose seq counts the slot's values in the generation, from 1 on. Values are written to the two copies in turn, and the greater
// number is the current value; an empty payload means none. A recovery replaces a torn value by a record with the number 0.
//
// A channel log has its header and two entries, which are written in turn, in a side file:
//
//	8192            8192+64         8192+128     0     8      12      16      24
//	+-------+-------+-------+-------+            +-----+------+-------+-------+
//	| entry | zeros | entry | zeros |   entry =  | end | size | CRC32C| check |
//	+-------+-------+-------+-------+            +-----+------+-------+-------+
//
// The end is that of the piece appended last, in bytes of data. If the piece is small, the entry has its size and CRC32C. Piece and entry are then
// forced together, and if the piece is torn, the other entry holds. For a larger piece, size and CRC32C are 0, and the piece was durable before its
// entry was written. So it is for pieces that are synced as a group, whose end is that of the last. The check is a number mixed from the other
// fields, the salt and the era; it is wrong if the entry is torn. In the header, next - first is how many bytes there were when the era began, or
// when the log was closed.
//
// # Threads
//
// A log's methods are safe for concurrent use. A writer or a reader is for one goroutine at a time, so each goroutine that writes needs its own
// writer. Close waits for none of them: call it when they are done.
package pmlog
