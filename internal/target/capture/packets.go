package capture

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"
	"github.com/gopacket/gopacket/pcapgo"
	"github.com/gopacket/gopacket/reassembly"
)

// packets reads captured packets of RESP. Each connection's bytes towards the server are put in order and read as commands, with the time of the packet
// in which a command began. Bytes that were lost end the command that they belong to; reading goes on with the next that is whole.
type packets struct {
	sieve
	source    *pcapgo.Reader
	first     gopacket.Decoder
	assembler *reassembly.Assembler
	ports     []uint16
	ready     []Record // read, and not yet handed over
	n         int64    // of the packet read last, from 1
	whole     error    // how the recording ended; nil while it has not
}

const (
	ng        = "\x0a\x0d\x0d\x0a" // a pcapng file begins so
	maxPacket = 1 << 20            // bytes; a kernel joins up to 512 KiB
	patience  = 4096               // pages of 1900 B of a connection that wait for a lost packet
)

func newPackets(in *bufio.Reader, l *Ledger, allow map[string]bool, ports []uint16) (*packets, error) {
	p := &packets{sieve: newSieve(l, allow), ports: ports}
	if magic, _ := in.Peek(4); string(magic) == ng {
		return nil, errors.New("pcapng: convert it: editcap -F pcap FILE NEW") // its reader takes as much memory as a block says
	}
	r, err := pcapgo.NewReader(in)
	if err != nil {
		return nil, fmt.Errorf("pcap: %w", err)
	}
	r.SetSnaplen(maxPacket)
	p.source, p.first = r, r.LinkType()
	p.assembler = reassembly.NewAssembler(reassembly.NewStreamPool(p))
	p.assembler.MaxBufferedPagesPerConnection, p.assembler.MaxBufferedPagesTotal = patience, 16*patience
	return p, nil
}

// Next implements Reader.
func (p *packets) Next(r *Record) error {
	for {
		for len(p.ready) > 0 {
			*r, p.ready = p.ready[0], p.ready[1:]
			if p.kept(r) {
				return nil
			}
		}
		if p.whole != nil {
			p.end()
			return p.whole
		}
		p.ready = p.ready[:0]
		p.packet()
	}
}

// packet reads the next packet.
func (p *packets) packet() {
	data, at, err := p.source.ReadPacketData()
	switch {
	case err == io.EOF, errors.Is(err, io.ErrUnexpectedEOF):
		p.assembler.FlushAll()
		p.whole = io.EOF
		if err != io.EOF {
			p.l.leave(cut, 1)
		}
		return
	case err != nil:
		p.whole = fmt.Errorf("packet %d: %w", p.n+1, err)
		return
	}
	p.n++
	if at.CaptureLength < at.Length {
		p.whole = fmt.Errorf("packet %d has %d of its %d bytes: capture whole packets (tcpdump -s 0)", p.n, at.CaptureLength, at.Length)
		return
	}
	packet := gopacket.NewPacket(data, p.first, gopacket.DecodeOptions{Lazy: true, NoCopy: true})
	tcp, ok := packet.Layer(layers.LayerTypeTCP).(*layers.TCP)
	if !ok || packet.NetworkLayer() == nil {
		return // of another protocol
	}
	p.assembler.AssembleWithContext(packet.NetworkLayer().NetworkFlow(), tcp, capturedAt(at))
	if p.n%4096 == 0 {
		p.assembler.FlushWithOptions(reassembly.FlushOptions{T: at.Timestamp.Add(-time.Minute), TC: at.Timestamp.Add(-time.Hour)})
	}
}

// capturedAt is a reassembly.AssemblerContext.
type capturedAt gopacket.CaptureInfo

// GetCaptureInfo implements reassembly.AssemblerContext.
func (c capturedAt) GetCaptureInfo() gopacket.CaptureInfo { return gopacket.CaptureInfo(c) }

// New implements reassembly.StreamFactory.
func (p *packets) New(network, transport gopacket.Flow, tcp *layers.TCP, _ reassembly.AssemblerContext) reassembly.Stream {
	c := &conversation{p: p, client: network.Src().String() + ":" + transport.Src().String()}
	asks := tcp.SYN && !tcp.ACK
	switch {
	case len(p.ports) > 0:
		asks = slices.Contains(p.ports, uint16(tcp.DstPort))
		c.ignored = !asks && !slices.Contains(p.ports, uint16(tcp.SrcPort))
	case !tcp.SYN: // the recording begins in the midst of it: servers have the lower port
		asks = tcp.DstPort < tcp.SrcPort
	}
	if c.towards = reassembly.TCPDirClientToServer; !asks {
		c.towards = reassembly.TCPDirServerToClient
		c.client = network.Dst().String() + ":" + transport.Dst().String()
	}
	return c
}

// conversation is a connection. Its direction as the assembler sees it is that of the first packet.
type conversation struct {
	p        *packets
	client   string
	towards  reassembly.TCPFlowDirection
	ignored  bool // of no server that was named, or not RESP
	database string
	lost     bool // looking for a whole command
	rest     []byte
	at       time.Time // when rest began
}

// Accept implements reassembly.Stream. Without a SYN, a connection begins with the packet that comes first.
func (c *conversation) Accept(_ *layers.TCP, _ gopacket.CaptureInfo, _ reassembly.TCPFlowDirection, _ reassembly.Sequence, start *bool, _ reassembly.AssemblerContext) bool {
	if !*start {
		*start = true
	}
	return !c.ignored
}

// ReassemblyComplete implements reassembly.Stream.
func (c *conversation) ReassemblyComplete(reassembly.AssemblerContext) bool {
	if len(c.rest) > 0 && !c.lost {
		c.p.l.leave(cut, 1)
	}
	c.rest = nil
	c.p.broken(c.client)
	return true
}

// ReassembledSG implements reassembly.Stream.
func (c *conversation) ReassembledSG(sg reassembly.ScatterGather, _ reassembly.AssemblerContext) {
	direction, _, _, skipped := sg.Info()
	if direction != c.towards || c.ignored {
		return
	}
	n, _ := sg.Lengths()
	if skipped > 0 { // bytes that were lost
		if len(c.rest) > 0 && !c.lost {
			c.p.l.leave("cut by a lost packet", 1)
		}
		c.p.broken(c.client)
		c.rest, c.lost = c.rest[:0], true
	}
	had := len(c.rest)
	c.rest = append(c.rest, sg.Fetch(n)...)
	begin := 0
	for begin < len(c.rest) {
		if c.lost && !c.resume(&begin) {
			break
		}
		words, size, err := command(c.rest[begin:])
		if errors.Is(err, errShort) {
			break
		}
		if err != nil {
			c.spoil(err)
			return
		}
		if begin >= had || c.at.IsZero() {
			c.at = sg.CaptureInfo(max(begin-had, 0)).Timestamp
		}
		if len(words) > 0 {
			c.emit(words)
		}
		begin += size
		c.at = time.Time{}
	}
	if c.rest = append(c.rest[:0], c.rest[begin:]...); len(c.rest) > 0 && c.at.IsZero() {
		c.at = sg.CaptureInfo(max(begin-had, 0)).Timestamp
	}
	if len(c.rest) > maxRequest {
		c.p.l.leave(tooLong, 1)
		c.rest, c.lost = c.rest[:0], true
	}
}

// spoil gives up on a connection that does not speak RESP.
func (c *conversation) spoil(err error) {
	c.ignored, c.rest = true, nil
	if c.p.l.Records > 0 || len(c.p.ready) > 0 || len(c.p.ports) > 0 {
		c.p.l.leave("not RESP: "+err.Error(), 1)
	}
}

// resume looks for the beginning of a command behind a gap, and moves begin there.
func (c *conversation) resume(begin *int) bool {
	rest := c.rest[*begin:]
	for at := 0; ; at++ {
		next := bytes.IndexByte(rest[at:], '*')
		if next < 0 {
			*begin = len(c.rest)
			return false
		}
		at += next
		if at > 0 && !bytes.HasSuffix(rest[:at], []byte("\r\n")) {
			continue
		}
		_, _, err := command(rest[at:])
		if err == nil || errors.Is(err, errShort) {
			*begin += at
			c.lost = err != nil && len(rest)-at < 8 // not enough to tell
			return err == nil || !c.lost
		}
	}
}

// emit hands a command over.
func (c *conversation) emit(words [][]byte) {
	own := make([][]byte, len(words))
	for i, w := range words {
		own[i] = bytes.Clone(w)
	}
	name := strings.ToUpper(string(own[0]))
	if name == "SELECT" && len(own) == 2 {
		c.database = string(own[1])
	}
	database := c.database
	if database == "" {
		database = "0"
	}
	c.p.ready = append(c.p.ready, Record{
		At: c.at.UnixNano(), Tick: 1e3, Client: c.client, Database: database, Name: name, Commands: [][][]byte{own},
	})
}

var (
	errShort = errors.New("a command goes on")
	errResp  = errors.New("no command")
)

// command reads a command of RESP, or one that was typed on a line, and its length. An empty line has no words.
func command(text []byte) (words [][]byte, size int, err error) {
	if text[0] != '*' {
		return typed(text)
	}
	count, at, err := countAt(text, 0, '*')
	if err != nil {
		return nil, 0, err
	}
	if count > 1<<20 {
		return nil, 0, errResp
	}
	for range count {
		length, begin, err := countAt(text, at, '$')
		switch {
		case err != nil:
			return nil, 0, err
		case length > maxRequest:
			return nil, 0, errResp
		case begin+length+2 > len(text):
			return nil, 0, errShort
		case string(text[begin+length:begin+length+2]) != "\r\n":
			return nil, 0, errResp
		}
		words, at = append(words, text[begin:begin+length]), begin+length+2
	}
	return words, at, nil
}

// countAt reads a line of a mark and a number, at an offset, and returns the offset behind it.
func countAt(text []byte, at int, mark byte) (n, behind int, err error) {
	if at >= len(text) {
		return 0, 0, errShort
	}
	line, _, ended := bytes.Cut(text[at:min(at+16, len(text))], []byte("\r\n"))
	if line[:1][0] != mark {
		return 0, 0, errResp
	}
	if !ended {
		if at+16 <= len(text) {
			return 0, 0, errResp
		}
		return 0, 0, errShort
	}
	n, err = strconv.Atoi(string(line[1:]))
	if err != nil || n < 0 {
		return 0, 0, errResp
	}
	return n, at + len(line) + 2, nil
}

// typed reads a line of words, as people type them.
func typed(text []byte) (words [][]byte, size int, err error) {
	line, _, ended := bytes.Cut(text[:min(len(text), 1024)], []byte{'\n'})
	for _, c := range line {
		if c >= 0x7f || c < ' ' && c != '\r' && c != '\t' {
			return nil, 0, errResp
		}
	}
	if !ended {
		if len(text) >= 1024 {
			return nil, 0, errResp
		}
		return nil, 0, errShort
	}
	for word := range bytes.FieldsSeq(line) {
		words = append(words, word)
	}
	return words, len(line) + 1, nil
}
