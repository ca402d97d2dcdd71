package pmem

import "hash/crc32"

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// folded is the length in bytes from which folding is faster than package crc32.
const folded = 64

// checksum returns the CRC32C of the bytes summed so far in sum, followed by p.
func checksum(sum uint32, p []byte) uint32 {
	if len(p) < folded || !canFold {
		return crc32.Update(sum, castagnoli, p)
	}
	return ^fold(^sum, p)
}
