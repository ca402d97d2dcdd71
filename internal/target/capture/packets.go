package capture

import (
	"bufio"
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"regexp"
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
	source    *pcapgo.Reader
	assembler *reassembly.Assembler
	ports     []uint
	ready     []found // and not yet handed over
	n         int64   // of the packet read last, from 1
	ended     error   // how the recording ended; nil while it has not
	speaks    bool    // a command was found
}

// found is a record, or why there is none.
type found struct {
	Record
	why string
}

const (
	ng        = "\x0a\x0d\x0d\x0a" // a pcapng file begins so
	maxPacket = 1 << 20            // bytes; a kernel joins up to 512 KiB
	patience  = 4096               // pages of 1900 B of a connection that wait for a lost packet
)

// isPackets reports whether a recording begins as one of packets.
func isPackets(head []byte) bool {
	return slices.Contains([]string{"\xd4\xc3\xb2\xa1", "\xa1\xb2\xc3\xd4", "\x4d\x3c\xb2\xa1", "\xa1\xb2\x3c\x4d", ng}, string(head[:min(len(head), 4)]))
}

func newPackets(in *bufio.Reader, ports []uint) (*packets, error) {
	for _, p := range ports {
		if p == 0 || p > 65535 {
			return nil, fmt.Errorf("--port %d: write a port from 1 to 65535", p)
		}
	}
	if magic, _ := in.Peek(4); string(magic) == ng {
		return nil, errors.New("pcapng: convert it: editcap -F pcap FILE NEW") // its reader takes as much memory as a block says
	}
	r, err := pcapgo.NewReader(in)
	if err != nil {
		return nil, fmt.Errorf("pcap: %w", err)
	}
	r.SetSnaplen(maxPacket)
	p := &packets{source: r, ports: ports}
	p.assembler = reassembly.NewAssembler(reassembly.NewStreamPool(p))
	p.assembler.MaxBufferedPagesPerConnection, p.assembler.MaxBufferedPagesTotal = patience, 16*patience
	return p, nil
}

// next implements source.
func (p *packets) next(r *Record) (why string, err error) {
	for len(p.ready) == 0 {
		if p.ended != nil {
			return "", p.ended
		}
		p.packet()
	}
	first := p.ready[0]
	p.ready = p.ready[1:]
	*r = first.Record
	return first.why, nil
}

// packet reads the next packet.
func (p *packets) packet() {
	data, at, err := p.source.ReadPacketData()
	switch {
	case err == io.EOF, errors.Is(err, io.ErrUnexpectedEOF):
		p.assembler.FlushAll()
		p.ended = io.EOF
		if err != io.EOF {
			p.ready = append(p.ready, found{why: cut})
		}
		return
	case err != nil:
		p.ended = fmt.Errorf("packet %d: %w", p.n+1, err)
		return
	}
	p.n++
	if at.CaptureLength < at.Length {
		p.ended = fmt.Errorf("packet %d has %d of its %d bytes: capture whole packets (tcpdump -s 0)", p.n, at.CaptureLength, at.Length)
		return
	}
	packet := gopacket.NewPacket(data, p.source.LinkType(), gopacket.DecodeOptions{Lazy: true, NoCopy: true})
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
	c := &conversation{p: p, client: network.Src().String() + ":" + transport.Src().String(), database: "0"}
	asks := tcp.SYN && !tcp.ACK
	switch {
	case len(p.ports) > 0:
		asks = slices.Contains(p.ports, uint(tcp.DstPort))
		c.ignored = !asks && !slices.Contains(p.ports, uint(tcp.SrcPort))
	case !tcp.SYN: // the recording begins in the midst of it: servers have the lower port
		asks = tcp.DstPort < tcp.SrcPort
	}
	if !asks {
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
	*start = true
	return !c.ignored
}

// ReassemblyComplete implements reassembly.Stream.
func (c *conversation) ReassemblyComplete(reassembly.AssemblerContext) bool {
	c.breaks(cut)
	return true
}

// breaks ends what the client has begun: a command, which is left out, and a transaction.
func (c *conversation) breaks(why string) {
	if len(c.rest) > 0 && !c.lost {
		c.p.ready = append(c.p.ready, found{why: why})
	}
	c.p.ready = append(c.p.ready, found{Record: Record{Client: c.client}})
	c.rest, c.lost = append(c.rest[:0], "\r\n"...), true // a command may begin here
}

// header matches the beginning of a command behind a gap.
var header = regexp.MustCompile(`\r\n\*[1-9][0-9]{0,6}\r\n\$`)

// ReassembledSG implements reassembly.Stream.
func (c *conversation) ReassembledSG(sg reassembly.ScatterGather, _ reassembly.AssemblerContext) {
	direction, _, _, skipped := sg.Info()
	if direction != c.towards || c.ignored {
		return
	}
	if skipped > 0 { // bytes that were lost
		c.breaks("cut by a lost packet")
	}
	had := len(c.rest)
	n, _ := sg.Lengths()
	c.rest = append(c.rest, sg.Fetch(n)...)
	at := func(begin int) time.Time {
		if begin < had || begin == had+n {
			return c.at
		}
		return sg.CaptureInfo(begin - had).Timestamp
	}
	begin := 0
	for begin < len(c.rest) {
		if c.lost {
			next := header.FindIndex(c.rest[begin:])
			if next == nil {
				begin = max(begin, len(c.rest)-len("\r\n*1000000\r\n"))
				break
			}
			begin, c.lost = begin+next[0]+2, false
		}
		words, size, err := command(c.rest[begin:])
		if errors.Is(err, errShort) {
			break
		}
		if err != nil { // it does not speak RESP
			c.ignored, c.rest = true, nil
			if c.p.speaks || len(c.p.ports) > 0 {
				c.p.ready = append(c.p.ready, found{why: "not RESP: " + err.Error()})
			}
			return
		}
		if len(words) > 0 {
			c.emit(words, at(begin))
		}
		begin += size
	}
	c.at = at(begin)
	if c.rest = append(c.rest[:0], c.rest[begin:]...); len(c.rest) > maxRequest {
		c.breaks(tooLong)
	}
}

// emit hands a command over.
func (c *conversation) emit(words []string, at time.Time) {
	name := strings.ToUpper(words[0])
	if name == "SELECT" && len(words) == 2 {
		c.database = words[1]
	}
	c.p.speaks = true
	c.p.ready = append(c.p.ready, found{Record: Record{
		At: at.UnixNano(), Tick: 1e3, Client: c.client, Database: c.database, Name: name, commands: [][]string{words},
	}})
}

var (
	errShort = errors.New("a command goes on")
	errResp  = errors.New("no command")
)

// command reads a command of RESP, or one that was typed on a line, and its length. An empty line has no words.
func command(text []byte) (words []string, size int, err error) {
	if text[0] != '*' {
		return typed(text)
	}
	count, at, err := countAt(text, 0, '*')
	if err != nil || count > 1<<20 {
		return nil, 0, cmp.Or(err, errResp)
	}
	parts := make([][]byte, 0, min(count, len(text)/4))
	for range count {
		length, begin, err := countAt(text, at, '$')
		at = begin + length + 2
		switch {
		case err != nil:
			return nil, 0, err
		case length > maxRequest:
			return nil, 0, errResp
		case at > len(text):
			return nil, 0, errShort
		case string(text[at-2:at]) != "\r\n":
			return nil, 0, errResp
		}
		parts = append(parts, text[begin:at-2])
	}
	for _, p := range parts { // only once all are there: each packet of a long command is read from its beginning
		words = append(words, string(p))
	}
	return words, at, nil
}

// countAt reads a line of a mark and a number, at an offset, and returns the offset behind it.
func countAt(text []byte, at int, mark byte) (n, behind int, err error) {
	if at == len(text) {
		return 0, 0, errShort
	}
	line, _, ended := bytes.Cut(text[at:min(at+16, len(text))], []byte("\r\n"))
	switch {
	case text[at] != mark, !ended && at+16 <= len(text):
		return 0, 0, errResp
	case !ended:
		return 0, 0, errShort
	}
	u, err := strconv.ParseUint(string(line[1:]), 10, 31)
	if err != nil {
		return 0, 0, errResp
	}
	return int(u), at + len(line) + 2, nil
}

// typed reads a line of words, as people type them.
func typed(text []byte) (words []string, size int, err error) {
	line, _, ended := bytes.Cut(text[:min(len(text), 1024)], []byte{'\n'})
	switch {
	case bytes.ContainsFunc(line, func(c rune) bool { return c >= 0x7f || c < ' ' && c != '\r' && c != '\t' }), !ended && len(text) >= 1024:
		return nil, 0, errResp
	case !ended:
		return nil, 0, errShort
	}
	return strings.Fields(string(line)), len(line) + 1, nil
}
