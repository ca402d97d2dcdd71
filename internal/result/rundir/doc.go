// Package rundir keeps each run on disk, in its own directory, which survives crashes and is readable without loadgen. Package run defines the result
// itself.
//
//	ROOT/20261120T173438Z-hydra-m4-4f2a/
//	    plan.json           the plan's canonical JSON, written before the run
//	    snapshots.log       workers' reports, as they came
//	    observations.jsonl  observations of the target, one run.Probe per line; if there are any
//	    samples.csv         single ops of the phases that want samples, one per line; if there are any
//	    hook-NAME.txt       output of the hook that restarted the targets; if one did
//	    result.json         the result (docs/result.md); complete, and only there once the run has finished
//
// The last line of observations.jsonl may be torn; those before it are whole.
//
// A directory without result.json belongs to a run that is in progress or was cut off. Everything that was there at the last Sync is kept. [Reopen]
// serves to make a result of such a run.
//
// An experiment has a directory beside those of its runs:
//
//	ROOT/20261120T173430Z-hydra-m4-9b01/
//	    experiment.json     its runs and, once it has finished, how variants compare; replaced atomically after each run
//	    settings.json       what its plan says of it; the log of each of its runs has this file's digest
//
// New directories, including the root, are accessible to their user only (0700, files 0600). An existing one keeps its mode.
//
// A directory may have been filled by somebody else, so its files are read within limits: regular files only, and JSON of at most 32 MiB, whose decoded
// form takes at most 64 MiB, and at most 64 levels deep.
//
// A process that writes in a directory holds a lock on it (flock), which ends with the process. Nobody else opens or deletes the directory. Names
// that begin with a dot belong to imports and deletions under way: [Delete] renames a directory before it removes it, [Import] fills one and then
// renames it, and both remove what a crash has left of either.
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
// A record without a worker's name is the coordinator's own: JSON of the orders that it gave and the reports that it got, from which a run that was
// cut off can be judged.
//
// The checksum is CRC-32C (Castagnoli) over the four bytes of size and everything after the checksum. So a run of zeros, as a crash may leave behind,
// is not a record. size is at least 1 and at most 16 MiB + 256.
//
// Records are only ever appended, in the order of Append, and synced together, so a crash can damage only what was appended after the last Sync.
// Reading stops at the first record that is not whole. In a finished run that is corruption; in an unfinished one it is the torn tail.
package rundir
