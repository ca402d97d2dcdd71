// Package pmem writes mapped files and says when the written bytes are durable.
//
// A file is created once, whole. Its blocks are reserved and filled with zeros, then the file and its directory are synced, before anybody gets the
// file. A store can then neither run out of space nor wait for a block, except on copy-on-write file systems. In memory (tmpfs) the file gets huge
// pages as far as the kernel grants them, since files on persistent memory are mapped that way.
//
// A file can also be made with blocks that are reserved and not written, or without any, to measure what that costs (Prealloc).
//
// Writing takes three steps, those of persistent memory: a store puts bytes into the mapping, a flush names the bytes that are to become durable, and
// a fence waits until everything flushed is durable. A put combines the first two. Acknowledge a write only after its fence has returned without an
// error. Until then, each 64-byte line of it may or may not survive a crash, in any order, flushed or not. The mode defines flush and fence:
//
//	mode       store            flush                        fence        after a loss of power
//	map_sync   to the mapping   CLWB, CLFLUSHOPT or CLFLUSH  SFENCE       kept; needs a DAX file system (MAP_SYNC)
//	msync      to the mapping   note the range               msync        kept, provided the device keeps what it says it has
//	fdatasync  pwrite           note the range               fdatasync    the same
//	clwb       to the mapping   as map_sync                  SFENCE       lost: the mapping is an ordinary one, only the instructions are real
//	none       to the mapping   nothing                      nothing      lost
//	o_dsync    pwrite, O_DSYNC  nothing                      nothing      as with fdatasync
//	o_direct   and O_DIRECT     nothing                      nothing      the same; a put is of whole blocks of the device
//
// In the last two modes, bytes that are stored by other means than a put are flushed and fenced as in fdatasync.
//
// On a disk, fdatasync is faster than msync. Write-back leaves pages clean, and a store to a clean page of a mapping faults. The kernel then writes
// back more than was stored: everything that it holds together with that page. After a pwrite it writes back only the blocks written to.
//
// The instructions are amd64's. CLWB, which may leave the line in the cache, is preferred to CLFLUSHOPT, and that to CLFLUSH (Intel SDM, volume 2A).
// Fences and locked instructions order them. A goroutine that moves to another processor executes several locked instructions, so a flush on one
// processor and its fence on another work like both on one. A fence is SFENCE and a locked instruction. SFENCE alone keeps later stores behind the
// flushes but lets the processor run on, so a clock read after it may show a time before the write has ended. Whole lines are stored with MOVNTDQ,
// which bypasses the caches and needs only the fence (Intel SDM, volume 1, non-temporal data): they are not read from memory before they are written,
// and need not wait for the cache. To avoid that read, mode none also uses MOVNTDQ for pieces of at least 4 KiB in files of at least 16 MiB, which
// the caches do not hold.
//
// The kernel reports a failed write-back once, and then treats the pages as clean: a second sync would succeed without the data. So the first failure
// poisons the file, and from then on everything but reading returns ErrPoisoned. A fault in the mapping (the file was truncated, or the medium has a
// bad block) is an error like any other.
//
// A View reads a file and never changes it: a log that is recovered in one is recovered in memory.
//
// Files need Linux; elsewhere the package only defines media and modes.
package pmem
