package selfcheck

import (
	"bytes"
	"fmt"
	"io/fs"
	"strconv"
	"strings"
)

// Machine holds facts about this machine that matter for measurements. A fact that could not be read is null.
type Machine struct {
	CPUModel       string   `json:"cpu_model"`
	CPUs           int      `json:"cpus"`
	Kernel         string   `json:"kernel"`
	ClockSource    string   `json:"clock_source"`
	Governor       string   `json:"governor"`
	SMT            *bool    `json:"smt"` // two threads share a core
	CgroupCPUs     *float64 `json:"cgroup_cpus"`
	FDSoft         *int64   `json:"fd_soft"`
	AvailableBytes *int64   `json:"available_bytes"` // bytes of available memory
	SwappedBytes   *int64   `json:"swapped_bytes"`
	OtherCPUs      *float64 `json:"other_cpus"` // processors that other programs used during the check
	StolenShare    *float64 `json:"stolen"`     // share of all processors' time that the hypervisor took
	Throttled      *uint64  `json:"throttled"`  // times that the control group ran out of quota during the check
}

// Look reads what a run's environment does not say about the machine: its threads, and its memory at this moment. root is the file system with proc and
// sys: os.DirFS("/").
func (m *Machine) Look(root fs.FS) {
	if b, err := fs.ReadFile(root, "sys/devices/system/cpu/smt/active"); err == nil {
		active := strings.TrimSpace(string(b)) == "1"
		m.SMT = &active
	}
	memory := fields(root, "proc/meminfo", ":")
	if kB, ok := memory["MemAvailable"]; ok {
		m.AvailableBytes = bytesOf(kB)
	}
	if total, ok := memory["SwapTotal"]; ok {
		m.SwappedBytes = bytesOf(total - memory["SwapFree"])
	}
}

func bytesOf(kB float64) *int64 {
	n := int64(kB) << 10
	return &n
}

// fields returns the first number after each name in a file of proc; none if it cannot be read.
func fields(root fs.FS, name, separator string) map[string]float64 {
	found := map[string]float64{}
	b, err := fs.ReadFile(root, name)
	if err != nil {
		return found
	}
	for line := range strings.Lines(string(b)) {
		key, rest, _ := strings.Cut(line, separator)
		if words := strings.Fields(rest); len(words) > 0 {
			if n, err := strconv.ParseFloat(words[0], 64); err == nil {
				found[strings.TrimSpace(key)] = n
			}
		}
	}
	return found
}

// Ticks says how all processors together have spent their time, in hundredths of a second, from the first line of proc/stat. See proc(5).
type Ticks struct{ busy, stolen, all float64 }

// ReadTicks reads the current counts.
func ReadTicks(root fs.FS) (Ticks, error) {
	b, err := fs.ReadFile(root, "proc/stat")
	if err != nil {
		return Ticks{}, err
	}
	first, _, _ := bytes.Cut(b, []byte("\n"))
	words := strings.Fields(string(first))
	const idle, iowait, steal, guest = 4, 5, 8, 9 // guest time is part of user time
	if len(words) <= steal || words[0] != "cpu" {
		return Ticks{}, fmt.Errorf("proc/stat begins with %q", first)
	}
	var t Ticks
	for i, word := range words[1:min(len(words), guest)] {
		n, err := strconv.ParseFloat(word, 64)
		if err != nil {
			return Ticks{}, fmt.Errorf("proc/stat begins with %q", first)
		}
		t.all += n
		switch i + 1 {
		case idle, iowait:
		case steal:
			t.stolen = n
		default:
			t.busy += n
		}
	}
	return t, nil
}

// Between sets how the processors spent the time between two readings; own is the number of processor seconds that the check itself used.
func (m *Machine) Between(from, to Ticks, own float64) {
	all := to.all - from.all
	if all <= 0 {
		return
	}
	const second = 100 // ticks, on every Linux (USER_HZ)
	others := max(0, to.busy-from.busy-own*second) / all * float64(m.CPUs)
	stolen := (to.stolen - from.stolen) / all
	m.OtherCPUs, m.StolenShare = &others, &stolen
}
