package memcached

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/loadgen/loadgen/pkg/driver"
)

var _ driver.Informant = Driver{}

// figures are the lines of stats that matter to most measurements, by memcached's names.
var figures = [...]driver.Figure{
	{Name: "bytes", Unit: "bytes"},
	{Name: "limit_maxbytes", Unit: "bytes"},
	{Name: "curr_items"},
	{Name: "curr_connections"},
	{Name: "rusage_user", Unit: "s", Counter: true},
	{Name: "rusage_system", Unit: "s", Counter: true},
	{Name: "cmd_get", Counter: true},
	{Name: "cmd_set", Counter: true},
	{Name: "get_hits", Counter: true},
	{Name: "get_misses", Counter: true},
	{Name: "evictions", Counter: true},
	{Name: "bytes_read", Unit: "bytes", Counter: true},
	{Name: "bytes_written", Unit: "bytes", Counter: true},
	{Name: "uptime", Unit: "s", Counter: true},
}

// counters are the prefixes and suffixes of other counters' names.
var counters = [...]string{"cmd_", "get_", "delete_", "incr_", "decr_", "cas_", "touch_", "total_", "lru_maintainer_", "moves_", "mutations_"}

// Figures lists figures of stats.
func (Driver) Figures() []driver.Figure { return slices.Clone(figures[:]) }

// Describe returns the unit and kind of a figure: as Figures has it, or inferred from its name.
func (Driver) Describe(name string) driver.Figure {
	if i := slices.IndexFunc(figures[:], func(f driver.Figure) bool { return f.Name == name }); i >= 0 {
		return figures[i]
	}
	f := driver.Figure{Name: name}
	f.Counter = slices.ContainsFunc(counters[:], func(begin string) bool { return strings.HasPrefix(name, begin) })
	if strings.HasSuffix(name, "bytes") {
		f.Unit = "bytes"
	}
	return f
}

// AppendQuestion sends stats.
func (Driver) AppendQuestion(dst []byte, _ driver.Link) ([]byte, error) {
	return append(dst, "stats\r\n"...), nil
}

// ParseFigures reads the STAT lines of a reply to stats, up to END.
func (Driver) ParseFigures(b []byte) (map[string]string, int, error) {
	told, n, err := readStats(b)
	if err != nil {
		return nil, 0, fmt.Errorf("stats: %w", err)
	}
	return told, n, nil
}

// errRefuses stands before the words of a server that gives no stats.
var errRefuses = errors.New("server says")

// readStats reads the STAT lines of a reply to stats or one of its kinds, up to END. It takes 0 bytes if the reply is incomplete.
func readStats(b []byte) (told map[string]string, at int, err error) {
	told = map[string]string{}
	for {
		line, n, err := readLine(b[at:])
		if n == 0 || err != nil {
			return nil, 0, err
		}
		at += n
		word, rest, _ := bytes.Cut(line, []byte(" "))
		switch {
		case string(word) == "END":
			return told, at, nil
		case isError(word):
			return nil, 0, fmt.Errorf("%w %s", errRefuses, printable(string(line)))
		case string(word) != "STAT":
			return nil, 0, fmt.Errorf("want STAT or END, got %s", quote(line))
		}
		name, value, _ := strings.Cut(string(rest), " ")
		told[name] = value
	}
}
