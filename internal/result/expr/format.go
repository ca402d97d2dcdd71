package expr

import (
	"math"
	"strconv"
	"strings"

	"github.com/loadgen/loadgen/internal/base/quantity"
)

// unit is a unit that figures are shown in.
type unit struct {
	name   string  // in plans
	scale  float64 // shown = scale × the value in base units
	suffix string  // after each figure
	kind   kind
}

// kind is the kind of a quantity.
type kind int

const (
	anything kind = iota
	rates         // per second
	times         // seconds
	shares        // 0 to 1
	sizes         // bytes
	micros        // microseconds, as servers count them: not a base unit
	speeds        // bytes per second
)

func (k kind) String() string {
	return [...]string{"a number", "a rate", "a time", "a share", "a number of bytes", "a number of microseconds", "bytes per second"}[k]
}

// units are the units of columns.
var units = [...]unit{
	{"", 1, "", anything},
	{"x", 1, "", anything},
	{"/s", 1, "", rates},
	{"/min", 60, "", rates},
	{"s", 1, "", times},
	{"ms", 1e3, "", times},
	{"us", 1e6, "", times},
	{"%", 100, " %", shares},
	{"B", 1, "", sizes},
	{"KiB", 1.0 / (1 << 10), "", sizes},
	{"MiB", 1.0 / (1 << 20), "", sizes},
	{"MB/s", 1e-6, "", speeds},
	{"GB/s", 1e-9, "", speeds},
}

// unitNamed returns the unit with a name, and whether it exists. An unknown one converts nothing.
func unitNamed(name string) (unit, bool) {
	for _, u := range units {
		if u.name == name {
			return u, true
		}
	}
	return unit{scale: 1}, false
}

// Format writes a quantity, given in base units, in one of the units of columns: with three digits, or all those before the point. It does
// not convert to an unknown unit.
func Format(v float64, name string) string {
	u, _ := unitNamed(name)
	return digits(Shown(v, name)) + u.suffix
}

// Shown converts a quantity from base units to one of the units of columns.
func Shown(v float64, name string) float64 {
	u, _ := unitNamed(name)
	return v * u.scale
}

// UnitText returns the readable form of a unit of columns, or of a server's figures.
func UnitText(name string) string {
	if rest, ok := strings.CutPrefix(name, "us"); ok {
		return "µs" + rest
	}
	return name
}

// UnitOf returns the unit of time in which a quantity, given in seconds, has digits before the point.
func UnitOf(seconds float64) string {
	switch {
	case seconds >= 1:
		return "s"
	case seconds >= 1e-3:
		return "ms"
	}
	return "us"
}

// digits writes three significant digits, or all before the point, in groups of three.
func digits(f float64) string {
	switch size := math.Abs(f); {
	case f == 0:
		return "0"
	case size < 1e-3 || math.IsInf(f, 0):
		return strconv.FormatFloat(f, 'g', 3, 64)
	case size < 99.95:
		return strconv.FormatFloat(f, 'f', 2-int(math.Floor(math.Log10(size*1.0005))), 64)
	}
	return quantity.Grouped(strconv.FormatFloat(f, 'f', 0, 64))
}

// shown is Format for a column of a plan, where small whole numbers without a unit are counts.
func shown(v float64, name string) string {
	if name == "" && v == math.Trunc(v) && math.Abs(v) < 100 {
		return strconv.FormatFloat(v, 'f', 0, 64)
	}
	return Format(v, name)
}
