package run

// Device says what the block devices below a phase's log files did, including for other programs. A device that several workers share counts once.
type Device struct {
	Bytes         *float64 `json:"bytes"`        // written
	Flushes       *float64 `json:"flushes"`      // of write caches
	BytesPerOp    *float64 `json:"bytes_per_op"` // of ops that changed something and ended ok
	FlushesPerOp  *float64 `json:"flushes_per_op"`
	Amplification *float64 `json:"amplification"` // Bytes per byte of entries
}
