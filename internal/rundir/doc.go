// Package rundir keeps a run on disk, in a directory of its own that is safe against crashes and readable without loadgen:
//
//	ROOT/20261120T173438Z-hydra-m4-4f2a/
//	    plan.json       the plan's canonical JSON, written before the run
//	    snapshots.log   what workers reported, as it came
//	    observations.jsonl  what was observed of the target, a run.Probe a line; there when anything was
//	    samples.csv     single ops of the phases that want samples, a line each; there when any has
//	    hook-NAME.txt   what the hook that started targets anew printed; there when one did
//	    result.json     the result (docs/result.md); there when the run has finished, and whole
//
// The last line of observations.jsonl may be torn; those before it are whole.
//
// A directory without result.json is that of a run that is still going on or was cut off; nothing in it is lost that was there
// at the last Sync. [Reopen] is for whoever makes a result of that.
//
// An experiment has a directory beside those of its runs:
//
//	ROOT/20261120T173430Z-hydra-m4-9b01/
//	    experiment.json    which runs there are and, when it has finished, how variants compare; replaced whole after each run
//	    tables.json        the tables of its plan, as the plan describes them; there when it has any
//
// Directories are made for their user alone (0700, files 0600), the root among them; one that is there keeps its mode.
//
// A directory may have been filled by somebody else. Its files are read within bounds: regular files only, JSON of at most 32 MiB whose decoded form
// takes at most 64 MiB, and 64 levels deep.
//
// Who writes in a directory holds a lock on it (flock), which ends with the process: nobody else opens or deletes it. Names that begin with a
// dot are on their way out, or in: [Delete] renames before it removes, [Import] fills a directory and renames it, and both remove what a
// crash has left of either.
//
// # The log
//
// All integers are little-endian.
//
//	+-------------+----------+----------+-----
//	| LGSNAP1\n   | record   | record   | …
//	| 8 B         |          |          |
//	+-------------+----------+----------+-----
//
//	record:
//	+-----------+-------------+-------------+--------------+-----------+
//	| size 4B   | crc32c 4B   | name's      | worker's     | snapshot  |
//	|           |             | length 1B   | name         |           |
//	+-----------+-------------+-------------+--------------+-----------+
//	                          |<------------- size bytes ------------->|
//
// A record without a worker's name is the coordinator's own: what it has ordered and heard, as JSON, from which a run that was cut off can be
// judged.
//
// The checksum is CRC-32C (Castagnoli) over the four bytes of size and all that follows the checksum, so that a run of zeros, as
// a crash may leave behind, is no record. size is at least 1 and at most 16 MiB + 256.
//
// Records are written in the order of Append and not in place, and synced together: a crash can spoil only what was appended after
// the last Sync. Reading stops at the first record that is not whole. In a finished run that is corruption; in an unfinished one it
// is the torn tail.
package rundir
