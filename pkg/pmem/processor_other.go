//go:build !amd64

package pmem

import (
	"encoding/binary"
	"sync/atomic"
	"unsafe"
)

// detect finds nothing: only amd64 is known.
func detect() processor { return processor{} }

// store8 stores v at p, which is aligned, in little-endian order and not in parts.
func store8(p *byte, v uint64) {
	var little [8]byte
	binary.LittleEndian.PutUint64(little[:], v)
	atomic.StoreUint64((*uint64)(unsafe.Pointer(p)), binary.NativeEndian.Uint64(little[:]))
}
