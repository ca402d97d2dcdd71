package pmem

// processor is how a processor writes lines of its caches back to memory.
type processor struct {
	name  string         // of the instruction
	flush func(p []byte) // starts the write-back of each line of p, which is not empty; nil where there is no instruction for it
	fence func()         // waits for what was flushed
}
