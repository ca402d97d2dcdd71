package servertest

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
)

// Ignite stands for a node of Apache Ignite 2.17.0 behind its client connector: it answers byte for byte what a real one was recorded to answer, and
// counts. It has the caches "items" and "redis-ignite-internal-cache-0", as that one had.
type Ignite struct {
	Addr    string
	Shuffle bool // answer requests that came together in any order, as real nodes do; set it before the first connection
	Indexed bool // answer questions for versions and metrics, as a node with ignite-indexing does; likewise

	mu     sync.Mutex
	names  []string                // of caches, in order
	caches map[uint32]*igniteCache // by id
	counts map[string]int          // of gets, puts and removals of single keys, those of many included; hits
}

// StartIgnite starts one, which ends with the test.
func StartIgnite(t testing.TB) *Ignite {
	t.Helper()
	s := &Ignite{caches: map[uint32]*igniteCache{}, counts: map[string]int{}}
	s.create("items")
	s.create("redis-ignite-internal-cache-0")
	s.Addr = Serve(t, nil, s.serve)
	return s
}

// Count returns how many "gets", "hits", "puts" or "removals" of single keys there have been.
func (s *Ignite) Count(what string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.counts[what]
}

// Caches returns the names of the caches.
func (s *Ignite) Caches() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.names)
}

type igniteCache struct {
	name    string
	objects map[string][]byte // by key, which is an object, too
}

// create makes a cache; the caller holds the lock, or is alone.
func (s *Ignite) create(name string) {
	h := uint32(0)
	for _, c := range []byte(name) {
		h = 31*h + uint32(c)
	}
	if s.caches[h] == nil {
		s.caches[h] = &igniteCache{name, map[string][]byte{}}
		s.names = append(s.names, name)
	}
}

func (s *Ignite) serve(conn net.Conn) {
	in := bufio.NewReaderSize(conn, 64<<10)
	hello, err := message(in)
	if err != nil || len(hello) < 8 || hello[0] != 1 {
		return
	}
	answer := handshake(binary.LittleEndian.Uint16(hello[1:]), binary.LittleEndian.Uint16(hello[3:]))
	if _, err := conn.Write(answer); err != nil || len(answer) == 0 || answer[4] == 0 {
		return
	}
	for {
		var answers [][]byte
		for len(answers) == 0 || in.Buffered() >= 4 && len(answers) < 64 {
			request, err := message(in)
			if err != nil {
				return
			}
			a := s.answer(request)
			if a == nil {
				return
			}
			answers = append(answers, a)
		}
		if s.Shuffle {
			rand.Shuffle(len(answers), func(i, j int) { answers[i], answers[j] = answers[j], answers[i] })
		}
		if _, err := conn.Write(slices.Concat(answers...)); err != nil {
			return
		}
	}
}

// message reads what follows a length.
func message(in io.Reader) ([]byte, error) {
	var size [4]byte
	if _, err := io.ReadFull(in, size[:]); err != nil {
		return nil, err
	}
	n := binary.LittleEndian.Uint32(size[:])
	if n > 64<<20 {
		return nil, fmt.Errorf("a message of %d bytes", n)
	}
	b := make([]byte, n)
	_, err := io.ReadFull(in, b)
	return b, err
}

// framed puts the length of a message in front of it.
func framed(b []byte) []byte {
	return append(binary.LittleEndian.AppendUint32(nil, uint32(len(b))), b...)
}

// nodeID is the node's, as an object.
const nodeID = "\x0a\xec\x42\xb0\xfa\x1a\x4a\xb0\x4c\x9c\xfd\xdd\x25\xf8\x78\x7a\xad"

func handshake(major, minor uint16) []byte {
	switch {
	case major == 1 && minor < 4:
		return framed([]byte{1})
	case major == 1 && minor < 7:
		return framed([]byte("\x01" + nodeID))
	case major == 1 && minor == 7:
		return framed([]byte("\x01\x0c\x00\x00\x00\x00" + nodeID))
	case major > 2: // it closes the connection
		return nil
	}
	why := fmt.Sprintf("Unsupported version: %d.%d.0", major, minor)
	return framed(append(text(append([]byte{0}, 1, 0, 7, 0, 0, 0), why), 1, 0, 0, 0))
}

// text appends a string.
func text(dst []byte, s string) []byte {
	return append(binary.LittleEndian.AppendUint32(append(dst, 9), uint32(len(s))), s...)
}

// igniteRequest is the unread rest of a request.
type igniteRequest struct {
	b   []byte
	bad bool // it was cut short
}

func (r *igniteRequest) take(n int) []byte {
	if r.bad = r.bad || n < 0 || n > len(r.b); r.bad {
		return make([]byte, max(min(n, 16), 0))
	}
	b := r.b[:n]
	r.b = r.b[n:]
	return b
}

func (r *igniteRequest) word() uint32 { return binary.LittleEndian.Uint32(r.take(4)) }

// object takes a string or a byte array, with its type and length.
func (r *igniteRequest) object() []byte {
	if len(r.b) < 5 {
		r.bad = true
		return nil
	}
	return r.take(5 + int(binary.LittleEndian.Uint32(r.b[1:])))
}

// answer returns the reply to a request; nil ends the connection.
func (s *Ignite) answer(request []byte) []byte {
	r := &igniteRequest{b: request}
	op, id := binary.LittleEndian.Uint16(r.take(2)), r.take(8)
	if r.bad {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	status, body := s.execute(op, r)
	if r.bad {
		return nil
	}
	return framed(append(binary.LittleEndian.AppendUint32(slices.Clone(id), status), body...))
}

func (s *Ignite) execute(op uint16, r *igniteRequest) (status uint32, body []byte) {
	switch op {
	case 1050:
		body = binary.LittleEndian.AppendUint32(nil, uint32(len(s.names)))
		for _, name := range s.names {
			body = text(body, name)
		}
		return 0, body
	case 1052:
		if name := r.object(); !r.bad {
			s.create(string(name[5:]))
		}
		return 0, nil
	case 1054:
		r.take(4 + 2 + 2) // length, number of properties, the first one's, which is the name
		if name := r.object(); !r.bad {
			s.create(string(name[5:]))
		}
		return 0, nil
	case 2004:
		if s.Indexed {
			return 0, s.query(string(r.b))
		}
		return 1, text(nil, noEngine)
	case 1000, 1001, 1002, 1003, 1004, 1010, 1011, 1013, 1016, 1020, 1055, 1056:
	default:
		return 2, text(nil, fmt.Sprintf("Invalid request op code: %d", op))
	}
	id := r.word()
	if op != 1056 {
		r.take(1)
	}
	if r.bad {
		return 0, nil
	}
	cache := s.caches[id]
	if cache == nil {
		return 1000, text(nil, fmt.Sprintf("Cache does not exist [cacheId= %d]", int32(id)))
	}
	switch op {
	case 1056:
		delete(s.caches, id)
		s.names = slices.DeleteFunc(s.names, func(name string) bool { return name == cache.name })
		return 0, nil
	case 1003, 1004:
		return 0, s.many(op == 1004, cache.objects, r)
	case 1013:
		clear(cache.objects)
		return 0, nil
	case 1020:
		r.take(int(r.word()))
		return 0, binary.LittleEndian.AppendUint64(nil, uint64(len(cache.objects)))
	case 1055:
		return 0, configuration(cache.name)
	}
	return 0, s.one(op, cache.objects, r)
}

// noEngine is the error message for SQL from a node without ignite-indexing.
const noEngine = "50000: Failed to execute query because indexing is disabled and no query engine is configured (consider adding module ignite-indexing " +
	"to classpath or moving it from 'optional' to 'libs' folder or configuring any query engine with " +
	"IgniteConfiguration.SqlConfiguration.QueryEnginesConfiguration property)."

// query answers SQL: the version, or metrics of the caches that it names. An item takes 100 bytes of the region beside its key and value.
func (s *Ignite) query(statement string) []byte {
	if strings.Contains(statement, "NODES") {
		return append(text(table(1, 1), "2.17.0"), 0)
	}
	used, rows := 16<<20, [][2]string{{"cluster.TotalServerNodes", "1"}}
	for _, c := range s.caches {
		for key, value := range c.objects {
			used += len(key) + len(value) + 100
		}
		if strings.Contains(statement, "'cache."+c.name+".'") {
			rows = append(rows, [2]string{"cache." + c.name + ".OffHeapPrimaryEntriesCount", strconv.Itoa(len(c.objects))})
		}
	}
	if strings.Contains(statement, "'io.dataregion.default.'") {
		used := strconv.Itoa((used + 4095) / 4096 * 4096)
		rows = append(rows, [2]string{"io.dataregion.default.MaxSize", "268435456"}, [2]string{"io.dataregion.default.TotalUsedSize", used})
	}
	body := table(2, len(rows))
	for _, row := range rows {
		body = text(text(body, row[0]), row[1])
	}
	return append(body, 0)
}

// table is what precedes the cells of an answer to SQL: a cursor, and how many columns and rows there are. Whether there is more follows them.
func table(columns, rows int) []byte {
	return binary.LittleEndian.AppendUint32(binary.LittleEndian.AppendUint32(make([]byte, 8), uint32(columns)), uint32(rows))
}

// one carries out an op on a key.
func (s *Ignite) one(op uint16, cache map[string][]byte, r *igniteRequest) []byte {
	key := string(r.object())
	old, there := cache[key]
	is := map[bool][]byte{false: {0}, true: {1}}
	switch op {
	case 1001:
		if value := r.object(); !r.bad {
			cache[key] = slices.Clone(value)
			s.counts["puts"]++
		}
		return nil
	case 1002:
		if value := r.object(); !there && !r.bad {
			cache[key] = slices.Clone(value)
		}
		return is[!there]
	case 1010:
		was, value := r.object(), r.object()
		same := there && string(old) == string(was)
		if same && !r.bad {
			cache[key] = slices.Clone(value)
		}
		return is[same]
	case 1011:
		return is[there]
	case 1016:
		delete(cache, key)
		s.counts["removals"]++
		return is[there]
	}
	s.counts["gets"]++
	if !there {
		return []byte{101}
	}
	s.counts["hits"]++
	return old
}

// many carries out an op on several keys.
func (s *Ignite) many(puts bool, cache map[string][]byte, r *igniteRequest) []byte {
	var found []byte
	n, seen := uint32(0), map[string]bool{}
	for range r.word() {
		key := string(r.object())
		if r.bad {
			return nil
		}
		if seen[key] && !puts { // a key is answered once
			continue
		}
		seen[key] = true
		if puts {
			cache[key] = slices.Clone(r.object())
			s.counts["puts"]++
			continue
		}
		s.counts["gets"]++
		if value, there := cache[key]; there {
			s.counts["hits"]++
			found = append(append(found, key...), value...)
			n++
		}
	}
	if puts {
		return nil
	}
	return append(binary.LittleEndian.AppendUint32(nil, n), found...)
}

// configuration is that of a cache with defaults: atomic, partitioned, without backups.
func configuration(name string) []byte {
	const before = "\x01\x00\x00\x00\x00\x00\x00\x00\x02\x00\x00\x00\x01\x65\x01\x01\x65\x00\x00\x00\x00\x00\x00\x00\x00\xf4\x01\x00\x00\x00\x04\x00\x00"
	const after = "\x00\x04\x00\x00\x00\x00\x00\x00\x00\x01\x00\x00\x00\x01\x00\x00\x08\x00\x03\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00" +
		"\x00\x00\x00\x00\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x10\x27\x00\x00\x00\x00\x00\x00\x00\xff" +
		"\xff\xff\xff\x65\x02\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00"
	return framed(append(text([]byte(before), name), after...))
}
