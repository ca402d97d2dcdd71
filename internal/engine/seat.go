package engine

import (
	"bytes"
	"os"
	"strconv"

	"github.com/loadgen/loadgen/internal/machine"
	"github.com/loadgen/loadgen/internal/measure"
)

// seat is where a loop's thread ran in its latest step. It belongs to that thread while the step lasts.
type seat struct {
	pinned     bool
	began, end int // CPUs; −1: not known
}

func (s *seat) take(pinned bool) { s.pinned, s.began = pinned, onCPU() }
func (s *seat) leave()           { s.end = onCPU() }

// threads says where the loops ran that carry their ops out themselves.
func (g *group) threads() []measure.Thread {
	list, root := []measure.Thread{}, os.DirFS("/")
	for _, l := range g.loops {
		if t, ok := l.tr.(*local); ok {
			list = append(list, measure.Thread{
				Session: l.sessions[0].id, Sessions: len(l.sessions), Pinned: t.seat.pinned,
				CPU: t.seat.began, CPUAtEnd: t.seat.end, Node: machine.NodeOf(root, t.seat.began), NodeAtEnd: machine.NodeOf(root, t.seat.end),
			})
		}
	}
	return list
}

// onCPU returns the number of the CPU that the calling thread runs on, or −1.
func onCPU() int {
	line, err := os.ReadFile("/proc/thread-self/stat")
	if err != nil {
		return -1
	}
	return parseOnCPU(line)
}

// parseOnCPU reads field 39 of the line in proc(5)'s stat. The name in field 2, in parentheses, may have any bytes.
func parseOnCPU(line []byte) int {
	const processor, afterName = 39, 3
	name := bytes.LastIndexByte(line, ')')
	words := bytes.Fields(line[name+1:])
	if name < 0 || len(words) <= processor-afterName {
		return -1
	}
	cpu, err := strconv.ParseUint(string(words[processor-afterName]), 10, 16)
	if err != nil {
		return -1
	}
	return int(cpu)
}
