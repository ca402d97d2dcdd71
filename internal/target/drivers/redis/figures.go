package redis

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/loadgen/loadgen/pkg/driver"
)

var _ driver.Informant = Driver{}

// figures are the lines of INFO that matter to most measurements, by INFO's names.
var figures = [...]driver.Figure{
	{Name: "used_memory", Unit: "bytes"},
	{Name: "used_memory_rss", Unit: "bytes"},
	{Name: "used_cpu_user", Unit: "s", Counter: true},
	{Name: "used_cpu_sys", Unit: "s", Counter: true},
	{Name: "total_commands_processed", Counter: true},
	{Name: "total_net_input_bytes", Unit: "bytes", Counter: true},
	{Name: "total_net_output_bytes", Unit: "bytes", Counter: true},
	{Name: "keyspace_hits", Counter: true},
	{Name: "keyspace_misses", Counter: true},
	{Name: "expired_keys", Counter: true},
	{Name: "evicted_keys", Counter: true},
	{Name: "connected_clients"},
	{Name: "uptime_in_seconds", Unit: "s", Counter: true},
}

// sparse matches the names that INFO omits until there is something to report: commands never called, empty databases.
var sparse = regexp.MustCompile(`^(cmdstat_\w+_(calls|usec|rejected_calls|failed_calls)|errorstat_\w+_count|db[0-9]+_(keys|expires))$`)

// Figures lists figures of INFO.
func (Driver) Figures() []driver.Figure { return slices.Clone(figures[:]) }

// Describe returns the unit and kind of a figure: as Figures has it, or inferred from its name.
func (Driver) Describe(name string) driver.Figure {
	if i := slices.IndexFunc(figures[:], func(f driver.Figure) bool { return f.Name == name }); i >= 0 {
		return figures[i]
	}
	f := driver.Figure{Name: name, Sparse: sparse.MatchString(name)}
	switch {
	case strings.HasPrefix(name, "errorstat_"):
		f.Counter = true
	case strings.HasPrefix(name, "cmdstat_"):
		f.Counter = !strings.HasSuffix(name, "_usec_per_call")
		if strings.HasSuffix(name, "_usec") || strings.HasSuffix(name, "_usec_per_call") {
			f.Unit = "us"
		}
	case strings.HasPrefix(name, "used_cpu_"):
		f.Unit, f.Counter = "s", true
	case strings.HasPrefix(name, "used_memory"), name == "maxmemory", name == "total_system_memory", strings.HasSuffix(name, "_bytes"):
		f.Unit = "bytes"
	}
	f.Counter = f.Counter || strings.HasPrefix(name, "total_") && name != "total_system_memory"
	return f
}

// AppendQuestion sends INFO, and INFO commandstats for the section that a plain INFO omits. Versions before 7 take one section at a time.
func (Driver) AppendQuestion(dst []byte, _ driver.Link) ([]byte, error) {
	return AppendCommand(AppendCommand(dst, "INFO"), "INFO", "commandstats"), nil
}

// ParseFigures reads the two replies. A line with several figures, such as cmdstat_get:calls=1,usec=2, yields cmdstat_get_calls and cmdstat_get_usec;
// bytes that a name cannot have become _.
func (Driver) ParseFigures(b []byte) (map[string]string, int, error) {
	told, at := map[string]string{}, 0
	for range 2 {
		v, n, err := readReply(b[at:])
		switch {
		case n == 0 || err != nil:
			return nil, 0, err
		case v.kind == errorReply:
			return nil, 0, fmt.Errorf("INFO: server says %s", printable(v.text))
		case v.kind != bulk:
			return nil, 0, fmt.Errorf("INFO: want a text, server says %q", printable(v.text))
		}
		at += n
		addFigures(told, string(v.text))
	}
	return told, at, nil
}

// addFigures splits a reply's lines into figures.
func addFigures(told map[string]string, info string) {
	for name, value := range parseInfo(info) {
		name = identifier(name)
		if !strings.Contains(value, "=") {
			told[name] = value
			continue
		}
		for part := range strings.SplitSeq(value, ",") {
			if key, inner, ok := strings.Cut(part, "="); ok {
				told[name+"_"+identifier(key)] = inner
			}
		}
	}
}

// identifier replaces every byte that a figure's name cannot have by _.
func identifier(name string) string {
	return strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' {
			return r
		}
		return '_'
	}, name)
}
