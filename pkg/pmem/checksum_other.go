//go:build !amd64

package pmem

const canFold = false

func fold(uint32, []byte) uint32 { panic("a processor that cannot fold") }
