// Package pmlog has the layouts of logs in mapped files, on package pmem, and what they promise when the power goes:
//
//   - What was acknowledged is there, byte for byte and in order; what is there was written; of what was being written when it
//     happened there is all or nothing. Acknowledged means that the call returned without an error, in a mode of pmem that keeps.
//   - Nothing from before a Clear comes back after it, nor does what one recovery did not find turn up in the next.
//   - Bytes that are neither what was acknowledged nor what a crash leaves are ErrCorrupt; they are never passed over.
//   - After the first error of a region nothing more is acknowledged.
//
// The layouts:
//
//	append   records with length, checksum and number, one behind the other
//	array    slots, each with room for one value; writers of different slots do not wait for each other
//	channel  bare bytes, and at the side how many there are
//	mashona  the records of the Java library Mashona, whose files it can read and write
//	raw      bare bytes and no promise: what the medium does, as a bound for the others
//
// # Formats
//
// Integers are little-endian. The header of a log is there twice, in two pages, and is written one copy after the other, each until it
// is durable: at any time one of them is whole, and when a call has returned, either will do. The records begin behind them.
//
//	0             128     4096             4224    8192
//	+-------------+-------+----------------+-------+------------+
//	| header copy | zeros | header copy    | zeros | records .. |
//	+-------------+-------+----------------+-------+------------+
//
//	0            8        9        10       11      12        16
//	+------------+--------+--------+--------+-------+---------+
//	| "LGPMLOG1" | layout | relaxed| length | clean | padding |
//	+------------+--------+--------+--------+-------+---------+
//	16     24       32           40    48      56           64     72      80      88         96     104     124     128
//	+------+--------+------------+-----+-------+------------+------+-------+-------+----------+------+-------+-------+
//	| salt | serial | generation | era | first | checkpoint | next | holes | slots | capacity | size | zeros | CRC32C|
//	+------+--------+------------+-----+-------+------------+------+-------+-------+----------+------+-------+-------+
//
// The serial number tells the newer copy. The era grows with each recovery and each clear; the generation is the era of the last clear.
// The checkpoint is an offset; all records before it, the last of which has the number next-1, are durable, except for
// that many holes; the first record of the generation has the number first. The capacity is that of an array's slots, or of a channel's
// data; the size is the region's. The checksum is that of the 124 bytes before it.
//
// A record of an append log begins at a multiple of the padding:
//
//	0       4        8     16     24        24+length
//	+-------+--------+-----+------+---------+
//	| check | length | seq | mark | payload |
//	+-------+--------+-----+------+---------+
//
// The length is that of the payload, plus 2^31. The check is the payload's CRC32C, which is computed before the record has its place,
// combined by XOR with 32 bits mixed from the other three fields. The mark is the record's era, combined by XOR with a number that
// depends on the log's salt and the record's offset, so that one comparison tells a record from any other bytes, also from a
// copy of a record.
//
// A record before the checkpoint may be of any era of the generation; one behind it has to be of the header's: so what a crash left
// unfinished is void from the recovery on, even if bytes written later should complete it. Records committed by length have
// a first word (check and length) of zero until the rest of them is durable.
//
// A slot of an array log has room for two copies of its value, one behind the other, each as large as a record with as many bytes
// of payload as the slot's capacity. A value is a record whose seq counts the values of the slot in the generation, from 1 on, written to the copies in turn;
// the greater number is the value, and an empty payload none. A recovery puts a record with the number 0 where it finds a torn one.
//
// A channel log has its header, and two entries that are written in turn, in a side file:
//
//	8192            8192+64         8192+128     0     8      12      16      24
//	+-------+-------+-------+-------+            +-----+------+-------+-------+
//	| entry | zeros | entry | zeros |   entry =  | end | size | CRC32C| check |
//	+-------+-------+-------+-------+            +-----+------+-------+-------+
//
// The end is that of the piece that was appended last, in bytes of data. Its size and CRC32C are there if it is small: piece and entry are then
// forced together, and if the piece is torn, what the other entry says is so. Those of a larger piece are 0, and it was durable before its entry
// was written. The check is a number mixed from the others, the salt and the era; that of a torn entry is wrong. In the header, next - first is
// how many bytes there were when the era began, or when the log was closed.
//
// A Mashona log is what version 1.1.0 of that library calls an AppendOnlyLog. Integers are big-endian; the padding is 4 or
// 256; linear is 1 unless the log is relaxed; the checkpoint is 0, or the offset behind the last record if the library was told to keep it. There
// is no generation, and a length of 0 ends the log: clearing it is writing zeros over it.
//
//	0          8         12           16       20               0        4        8         8+length
//	+----------+---------+------------+--------+------------+   +--------+--------+---------+-------+
//	|"TRBAOL01"| padding | checkpoint | linear | records .. |   | length | CRC32C | payload | zeros |
//	+----------+---------+------------+--------+------------+   +--------+--------+---------+-------+
//
// Its records have nothing but a checksum. A last record that was torn by a crash, and whose payload holds the image of a whole record where one
// may begin, cannot be told from an earlier record with a damaged length in front of records that were acknowledged: to open such a log is
// ErrCorrupt, and changes nothing. Append logs have marks, and do not know the case.
//
// Of its other two forms, which want a DAX device to be written by the library, the files can be read. A MappedFileChannel is bare bytes, with
// a side file of 256 bytes: "TRBMFCM1" and their number, in 4. The slots of an ArrayStore have capacity+8 bytes, rounded up to 256: length,
// CRC32C, payload.
//
// # Threads
//
// The methods of a log may be called by several goroutines, those of a writer or a reader by one at a time; each goroutine that
// writes has a writer of its own. Close waits for none of them: call it when they are done.
package pmlog
