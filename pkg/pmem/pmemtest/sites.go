package pmemtest

import (
	"fmt"
	"maps"
	"path"
	"runtime"
	"slices"
	"strings"
)

// sites counts calls by call site.
type sites struct {
	names     map[[depth]uintptr]string
	calls     map[string]int
	redundant map[string]int
}

const depth = 8

func newSites() *sites {
	return &sites{map[[depth]uintptr]string{}, map[string]int{}, map[string]int{}}
}

// called returns the call site of a medium's method, up frames above: its file and line, and those of its callers in the same package
// outside tests, so that a helper's flush counts separately for each of its uses.
func (s *sites) called(up int) string {
	var pcs [depth]uintptr
	runtime.Callers(2+up, pcs[:])
	name, known := s.names[pcs]
	if !known {
		name = describe(pcs[:])
		s.names[pcs] = name
	}
	return name
}

func describe(pcs []uintptr) string {
	var chain []string
	home := ""
	for frames := runtime.CallersFrames(pcs); ; {
		f, more := frames.Next()
		dir := path.Dir(f.File)
		if home == "" {
			home = dir
		}
		if dir != home || strings.HasSuffix(f.File, "_test.go") {
			break
		}
		chain = append(chain, fmt.Sprintf("%s:%d %s", path.Base(f.File), f.Line, f.Function[strings.LastIndexByte(f.Function, '.')+1:]))
		if !more {
			break
		}
	}
	return strings.Join(chain, " < ")
}

func (s *sites) count(site string, redundant bool) {
	s.calls[site]++
	if redundant {
		s.redundant[site]++
	}
}

// Sites returns the sites that have flushed or fenced so far, sorted.
func (t *Trace) Sites() []string { return slices.Sorted(maps.Keys(t.sites.calls)) }

// Redundant returns the sites that flushed a line to which the same medium had not stored since its last flush, or that fenced without a flush.
func (t *Trace) Redundant() []string { return slices.Sorted(maps.Keys(t.sites.redundant)) }
