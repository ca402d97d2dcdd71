// Package pmem writes mapped files and says when what was written is durable.
//
// A file is made once, whole: its blocks are reserved, zeros are written over them, and file and directory are synced before anybody
// has it. A store can then neither run out of space nor wait for a block, except on file systems that copy on write. In memory
// (tmpfs) it has huge pages, as far as the kernel gives them, which is how files on persistent memory are mapped.
//
// Writing has three steps, those of persistent memory: a store puts bytes into the mapping, a flush names the bytes that are to become
// durable, a fence waits until all that was flushed is. A put is the first two in one. Only what a fence has returned for without an error may be acknowledged.
// Until then each 64-byte line of it may or may not survive a crash, in any order, flushed or not. The mode says what
// flush and fence are:
//
//	mode       store           flush                        fence        after a loss of power
//	map_sync   to the mapping  CLWB, CLFLUSHOPT or CLFLUSH  SFENCE       kept; wants a DAX file system (MAP_SYNC)
//	msync      to the mapping  note the range               msync        kept, as far as the device keeps what it says it has
//	fdatasync  pwrite          note the range               fdatasync    the same
//	clwb       to the mapping  as map_sync                  SFENCE       lost: the mapping is an ordinary one, only the instructions are real
//	none       to the mapping  nothing                      nothing      lost
//
// On a disk, fdatasync takes less time than msync. What was written back is clean, and a store to a clean page of a mapping is a fault,
// after which the kernel writes back more than what was stored: all that it holds together with that page. After a pwrite it writes back the blocks
// written to.
//
// The instructions are those of amd64; CLWB, which may leave the line in the cache, goes before CLFLUSHOPT, and that before CLFLUSH
// (Intel SDM, volume 2A). They are ordered by fences and by locked instructions, of which a goroutine that moves to another
// processor executes several; a flush on one processor and its fence on another are as good as both on one. A fence is SFENCE and a locked
// instruction: SFENCE keeps later stores behind the flushes, but lets the processor go on, and a clock that is read behind it tells of a write
// that is still under way. Whole lines are stored with MOVNTDQ, which goes past the caches and needs the fence only (Intel SDM,
// volume 1, non-temporal data): they are not read from memory before they are written, and need not wait for the cache. For the
// first of these, mode none does so, too, with pieces from 4 KiB on in files from 16 MiB on, which the caches do not hold.
//
// The kernel reports a failed write-back once, and then takes the pages for clean: a second sync would succeed without the data. So the
// first failure poisons the file, and everything but reading returns ErrPoisoned from then on. A fault in the mapping (the file
// was truncated, the medium has a bad block) is an error like any other.
//
// Files are for Linux; elsewhere the package has only what a medium and a mode are.
package pmem
