package pmem

import "hash/crc32"

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// folded is from how many bytes on folding takes less time than what package crc32 has.
const folded = 64

// checksum returns the CRC32C of bytes that end with p, where sum is that of those before.
func checksum(sum uint32, p []byte) uint32 {
	if len(p) < folded || !canFold {
		return crc32.Update(sum, castagnoli, p)
	}
	return ^fold(^sum, p)
}
