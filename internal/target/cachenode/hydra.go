package cachenode

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// hydra is the dialect of Hydra Cache: HTTP, with the version of each value in front of it.
type hydra struct {
	*conn
	space   *space
	request hydraRequest
}

func newHydra(c *conn) dialect { return &hydra{conn: c, space: c.node.space} }

// appendHydraRefusal appends nothing: a Hydra server closes a connection that it does not want.
func appendHydraRefusal(dst []byte, _ string) []byte { return dst }

// hydraIdle is how long a connection may be silent, between requests and within one, before a Hydra server closes it.
const hydraIdle = 3 * time.Second

// The bodies of replies, and their types.
const (
	plainText   = "text/plain"
	hydraBinary = "application/vnd.hydra-binary"
	noMethod    = "<html><body><h1>Method not allowed</h1></body></html>"
	unknown     = "Unknown Internal Error"
)

// answer implements dialect.
func (h *hydra) answer(b []byte) (taken int, goOn bool) {
	if b[0] == peerRequest {
		return h.answerPeer(b)
	}
	r := &h.request
	switch state := r.parse(b, h.node.requestLimit()); state {
	case unfinishedHead:
		return 0, true
	case unfinishedBody:
		if r.expects && !r.told {
			r.told = true
			h.out = append(h.out, "HTTP/1.1 100 Continue\r\n\r\n"...)
			h.flush()
		}
		return 0, true
	}
	if r.expects && !r.told {
		h.out = append(h.out, "HTTP/1.1 100 Continue\r\n\r\n"...)
	}
	h.execute()
	taken, goOn = r.size, !r.last()
	*r = hydraRequest{}
	return taken, goOn
}

// execute carries out the request and answers it. While it waits for other nodes, everything else of its I/O thread waits, too. If the thread comes back
// to the connection only after hydraIdle, it closes it, and what it has done is not told.
func (h *hydra) execute() {
	r := &h.request
	verb, run := verbOther, h.unsupported
	switch {
	case r.status != "":
		run = func() { h.reply(r.status, "", nil) }
	case r.method == "GET":
		verb, run = verbGet, h.get
	case r.method == "PUT":
		verb, run = verbSet, h.put
	case r.method == "DELETE" && !h.space.early():
		verb, run = verbDel, h.del
	}
	h.counts[verb].Add(1)
	h.begin(verb)
	thread := &h.space.threads[h.id%ioThreads]
	round, began := thread.enter(), time.Now()
	run()
	thread.leave(round)
	if time.Since(began) >= hydraIdle {
		h.mute, h.ends = true, closeFault
	}
	h.finish()
}

// item returns the name that the request's key is stored under: its context, and the hash of the key itself.
func (h *hydra) item() (name []byte, ok bool) {
	path := h.request.target
	if !h.space.early() {
		path, _, _ = bytes.Cut(path, []byte("?"))
	}
	path = bytes.TrimSuffix(bytes.TrimPrefix(path, []byte("/")), []byte("/"))
	if len(path) == 0 {
		return nil, false
	}
	context, key, within := bytes.Cut(path, []byte("/"))
	if h.space.early() || !within {
		context, key = nil, path
	}
	return binary.LittleEndian.AppendUint32(bytes.Clone(context), ketamaHash(key)), true
}

// query returns a parameter of the request's target.
func (h *hydra) query(name string) string {
	_, query, _ := bytes.Cut(h.request.target, []byte("?"))
	for parameter := range bytes.SplitSeq(query, []byte("&")) {
		if key, value, _ := strings.Cut(string(parameter), "="); key == name && !h.space.early() {
			return value
		}
	}
	return ""
}

func (h *hydra) get() {
	path, _, _ := strings.Cut(string(h.request.target), "?")
	if h.space.early() {
		path = string(h.request.target)
	}
	switch strings.Trim(path, "/") {
	case "registry":
		h.service(h.space.registry())
		return
	case "storage":
		h.service(h.storage())
		return
	case "dump":
		h.service(h.dump())
		return
	}
	name, ok := h.item()
	if !ok {
		h.reply("200 OK", "", nil)
		return
	}
	found, err := h.space.get(h, name)
	switch {
	case err != nil:
		h.reply("500 Internal Server Error", plainText, []byte(err.Error()))
	case found == nil:
		h.reply("404 Not Found", plainText, []byte("Data not found"))
	case h.query("protocol") == "xml":
		h.reply("200 OK", "text/xml", found.xml())
	default:
		h.reply("200 OK", hydraBinary, found.frame())
	}
}

func (h *hydra) put() {
	name, ok := h.item()
	if !ok {
		h.reply("200 OK", "", nil)
		return
	}
	v, err := parseFrame(h.request.body)
	if err != nil {
		h.reply("500 Internal Server Error", plainText, []byte(err.Error()))
		return
	}
	stored, created, err := h.space.put(h, name, v)
	var conflict conflictError
	switch {
	case errors.As(err, &conflict):
		h.reply("409 Conflict", plainText, []byte(conflict))
	case err != nil:
		h.reply("500 Internal Server Error", plainText, []byte(err.Error()))
	default:
		status, kind, body := "200 OK", hydraBinary, stored.frame()
		if created {
			status = "201 Created"
		}
		if h.space.Build == april3 {
			kind, body = "", nil
		}
		h.reply(status, kind, body)
	}
}

func (h *hydra) del() {
	name, ok := h.item()
	if ok {
		if err := h.space.del(h, name); err != nil {
			h.reply("500 Internal Server Error", plainText, []byte(err.Error()))
			return
		}
	}
	h.reply("200 OK", "", nil)
}

func (h *hydra) unsupported() {
	h.reply("405 Method Not Allowed", "text/html; UTF-8", []byte(noMethod))
}

// service answers with JSON, as a call of the client's function if it names one.
func (h *hydra) service(json []byte) {
	if handler := h.query("handler"); handler != "" {
		json = fmt.Appendf(nil, "%s(%s)", handler, json)
	}
	h.reply("200 OK", plainText, json)
}

// storage says how full the node is and, in the later state, which N, W and R it has.
func (h *hydra) storage() []byte {
	stats, bound := h.node.store.stats(), h.node.cfg.Memory
	if h.space.early() {
		return fmt.Appendf(nil, `{"totalMemory":"%[1]d MB","size":%[2]d,"maxMemory":"%[1]d MB","freeMemory":"%[3]d MB"}`, bound>>20, stats.keys[0], (bound-stats.used)>>20)
	}
	return fmt.Appendf(nil, `{"R":%d,"totalMemory":%d,"size":%d,"W":%d,"maxMemory":%[2]d,"freeMemory":%[5]d,"N":%d}`,
		h.space.R, bound, stats.keys[0], h.space.W, bound-stats.used, h.space.N)
}

// dump lists what the node holds outside any context, in the order in which it came.
func (h *hydra) dump() []byte {
	list := []byte("[")
	for cursor := uint64(0); ; {
		names, next := h.node.store.scan(0, cursor, 1000)
		for _, name := range names {
			found := h.space.local([]byte(name))
			if len(name) != 4 || found == nil {
				continue
			}
			if len(list) > 1 {
				list = append(list, ',')
			}
			list = fmt.Appendf(list, `{"keyHash":%d,"size":%d,"version":%q}`, binary.LittleEndian.Uint32([]byte(name)), len(found.blob), found.version.String())
		}
		if cursor = next; cursor == 0 {
			return append(list, ']')
		}
	}
}

// reply appends a response. Without a type, it has no body; a HEAD gets only the length.
func (h *hydra) reply(status, kind string, body []byte) {
	r := &h.request
	h.out = append(append(append(h.out, r.protocol()...), ' '), status...)
	h.out = time.Now().UTC().AppendFormat(append(h.out, "\r\nDate: "...), "Mon, 02 Jan 2006 15:04:05 GMT")
	h.out = strconv.AppendInt(append(h.out, "\r\nServer: Hydra/1.1\r\nContent-Length: "...), int64(len(body)), 10)
	if kind != "" {
		h.out = append(append(h.out, "\r\nContent-Type: "...), kind...)
	}
	if said := r.connection(); said != "" {
		h.out = append(append(h.out, "\r\nConnection: "...), said...)
	}
	h.out = append(h.out, "\r\n\r\n"...)
	if r.method != "HEAD" {
		h.out = append(h.out, body...)
	}
}

// version says how old a value is: a counter, and the node that counted last.
type version struct {
	address [4]byte
	port    uint16
	counter int64
}

func (v version) String() string { return fmt.Sprintf("%d,%s", v.counter, v.node()) }

func (v version) node() string {
	return fmt.Sprintf("%d.%d.%d.%d:%d", v.address[0], v.address[1], v.address[2], v.address[3], v.port)
}

// versioned is a value with its version. In the store, and between nodes, it is
//
//	+------------+---------+------------+----------
//	| address 4B | port 2B | counter 8B | blob
//	+------------+---------+------------+----------
//
// with big-endian integers. To clients, a frame of 6 bytes precedes it: 00 05, the length of the rest; 01, the protocol's version; 00 64, the type of
// message, a blob; and 04, the length of the address.
type versioned struct {
	version
	blob []byte
}

const (
	versionSize = 14
	frameStart  = "\x00\x05\x01\x00\x64\x04"
)

func (v *versioned) appendTo(dst []byte) []byte {
	dst = append(dst, v.address[:]...)
	dst = binary.BigEndian.AppendUint16(dst, v.port)
	dst = binary.BigEndian.AppendUint64(dst, uint64(v.counter))
	return append(dst, v.blob...)
}

// parseVersioned reads what appendTo has written; nil if it is too short for that.
func parseVersioned(b []byte) *versioned {
	if len(b) < versionSize {
		return nil
	}
	v := &versioned{blob: b[versionSize:]}
	copy(v.address[:], b)
	v.port, v.counter = binary.BigEndian.Uint16(b[4:]), int64(binary.BigEndian.Uint64(b[6:]))
	return v
}

func (v *versioned) frame() []byte { return v.appendTo([]byte(frameStart)) }

// parseFrame reads the body of a PUT. Of the version, only the counter matters: the address may be of 4 or 16 bytes, and is not kept.
func parseFrame(b []byte) (*versioned, error) {
	if len(b) < 5 {
		return nil, hydraError(unknown)
	}
	header := int(int16(binary.BigEndian.Uint16(b)))
	switch {
	case header < 5: // what follows the length: version 1 byte, type 2 bytes, and the length itself
		return nil, hydraError(fmt.Sprintf("Invalid protocol header length [%d]", header))
	case b[2] != 1:
		return nil, hydraError(fmt.Sprintf("Protocol version [%d] is not supported", int8(b[2])))
	case len(b) <= header:
		return nil, hydraError(unknown)
	}
	b = b[header:]
	size := int(b[0])
	switch {
	case len(b) < 1+size+10:
		return nil, hydraError(unknown)
	case size != 4 && size != 16:
		return nil, hydraError("addr is of illegal length")
	}
	b = b[1+size:]
	return &versioned{version{counter: int64(binary.BigEndian.Uint64(b[2:]))}, b[10:]}, nil
}

// xml returns the value as the later state's XML.
func (v *versioned) xml() []byte {
	return fmt.Appendf(nil, `<?xml version="1.0" encoding="UTF-8"?>`+"\r\n"+`<message><data><![CDATA[%s]]></data><version><increment><identity>`+
		`<address><![CDATA[%s]]></address><port>%d</port></identity><value>%d</value></increment></version></message>`+"\r\n",
		mimeBase64(v.blob), mimeBase64(v.address[:]), int16(v.port), v.counter)
}

// mimeBase64 encodes b in lines of up to 76 characters.
func mimeBase64(b []byte) []byte {
	var lines []byte
	for line := range slices.Chunk([]byte(base64.StdEncoding.EncodeToString(b)), 76) {
		lines = append(append(lines, line...), "\r\n"...)
	}
	return lines
}
