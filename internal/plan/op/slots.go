package op

import "bytes"

// NumSlots is how many hash slots a Redis cluster divides its keys between.
const NumSlots = 1 << 14

// Slots says which endpoint has each slot of a cluster: the cluster's own placement, as far as it is known. Unlike other placements it changes, so
// one goroutine at a time may use it. A request for a slot that no endpoint has goes to endpoint 0, which will know more.
type Slots struct {
	home [NumSlots]int16 // the endpoint that has the slot; −1 if none has
	held []int           // by endpoint: how many slots it has

	readers [][]int // by endpoint: which endpoints serve the gets for its slots; itself if empty. Copies of the map share these lists
	reads   []bool  // by endpoint: whether it is in one of these lists
}

// NewSlots returns a map of that many endpoints, fewer than 2^15, none of which has a slot.
func NewSlots(endpoints int) *Slots {
	s := &Slots{held: make([]int, endpoints)}
	for i := range s.home {
		s.home[i] = -1
	}
	return s
}

// Set gives a slot to an endpoint.
func (s *Slots) Set(slot, endpoint int) {
	if was := s.home[slot]; was >= 0 {
		s.held[was]--
	}
	s.home[slot] = int16(endpoint)
	s.held[endpoint]++
}

// Copy makes s equal to from, which must have as many endpoints.
func (s *Slots) Copy(from *Slots) {
	s.home, s.readers, s.reads = from.home, from.readers, from.reads
	copy(s.held, from.held)
}

// Share sets which endpoints serve the gets for the slots of each endpoint. An empty list stands for the endpoint itself.
func (s *Slots) Share(readers [][]int) {
	s.readers, s.reads = readers, make([]bool, len(readers))
	for _, list := range readers {
		for _, at := range list {
			s.reads[at] = true
		}
	}
}

// Reader returns which endpoint serves the gets of a stream for the slots of an endpoint.
func (s *Slots) Reader(endpoint int, stream uint32) int {
	if endpoint >= len(s.readers) || len(s.readers[endpoint]) == 0 {
		return endpoint
	}
	list := s.readers[endpoint]
	return list[int(stream)%len(list)]
}

// Serves reports whether requests go to an endpoint: it has slots, or serves gets for others.
func (s *Slots) Serves(endpoint int) bool {
	return s.held[endpoint] > 0 || endpoint < len(s.reads) && s.reads[endpoint]
}

// Held returns how many slots an endpoint has.
func (s *Slots) Held(endpoint int) int { return s.held[endpoint] }

// Missing returns how many slots no endpoint has.
func (s *Slots) Missing() int {
	missing := NumSlots
	for _, n := range s.held {
		missing -= n
	}
	return missing
}

// Endpoints implements Placement.
func (s *Slots) Endpoints() int { return len(s.held) }

// Home implements Placement.
func (s *Slots) Home(key []byte) int { return max(0, int(s.home[SlotOf(key)])) }

// Place implements Placement: one endpoint has a key, whatever n is. The cluster itself manages its replicas.
func (s *Slots) Place(dst []int, key []byte, n int) []int {
	if n < 1 {
		return dst
	}
	return append(dst, s.Home(key))
}

// SlotOf returns the slot of a key: its CRC-16 modulo 16,384. If there is text between the first { and the next }, only that text is hashed (Redis
// cluster specification, "Key distribution model" and "Hash tags").
func SlotOf(key []byte) int {
	if from := bytes.IndexByte(key, '{'); from >= 0 {
		if size := bytes.IndexByte(key[from+1:], '}'); size > 0 {
			key = key[from+1 : from+1+size]
		}
	}
	var crc uint16
	for _, b := range key {
		crc = crc<<8 ^ crcTable[byte(crc>>8)^b]
	}
	return int(crc % NumSlots)
}

// crcTable is the table of CRC-16/XMODEM: polynomial 0x1021, not reflected, initial value 0 (the specification's appendix A).
var crcTable = func() (table [256]uint16) {
	for i := range table {
		crc := uint16(i) << 8
		for range 8 {
			carry := crc >> 15
			crc = crc<<1 ^ carry*0x1021
		}
		table[i] = crc
	}
	return table
}()
