package dialect

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Mistake is an error in a value: what is wrong, and a sentence on what to write instead.
type Mistake struct{ What, Write string }

func (m *Mistake) Error() string {
	return m.What + "; " + strings.TrimSuffix(strings.Replace(m.Write, "Write", "write", 1), ".")
}

const (
	// WriteDuration says how to write a duration.
	WriteDuration = `Write a duration such as "10s", "1m30s" or "100us".`
	writeSize     = `Write a size such as "64MiB" or "200B", or a whole number of bytes.`
	writeRate     = `Write a rate such as "50k/s" or "300/min", or a number per second.`
	writeCount    = `Write a whole number, such as 1000, or in quotes "10k" or "1M".`
	writeShare    = `Write a percentage such as "1%", or a share such as 0.01.`

	// maxQuantity bounds the text of a quantity in bytes. No useful one is longer, and messages quote it.
	maxQuantity = 32
)

// ParseDuration reads what time.ParseDuration reads, except signs.
func ParseDuration(text string) (time.Duration, error) {
	if len(text) > maxQuantity || strings.HasPrefix(text, "-") || strings.HasPrefix(text, "+") {
		return 0, &Mistake{Quote(text) + " is not a duration", WriteDuration}
	}
	d, err := time.ParseDuration(text)
	if err != nil {
		what := Quote(text) + " is not a duration"
		if _, err := strconv.ParseFloat(text, 64); err == nil {
			what = "duration " + Quote(text) + " has no unit"
		}
		return 0, &Mistake{what, WriteDuration}
	}
	return d, nil
}

// secondsToDuration converts seconds to a duration, rounded to nanoseconds.
func secondsToDuration(s float64) (time.Duration, error) {
	ns := math.Round(s * 1e9)
	if !(ns >= 0 && ns < math.MaxInt64) {
		return 0, &Mistake{fmt.Sprintf("a duration of %g seconds", s), WriteDuration}
	}
	return time.Duration(ns), nil
}

// ParseSize reads a number of bytes, KiB (1,024), kB (1,000) and so on up to TiB and TB. The result must be a whole number of bytes.
func ParseSize(text string) (int64, error) {
	n, unit, err := CutNumber(text)
	factor := bytesIn[unit]
	if err != nil || factor == 0 {
		what, write := Quote(text)+" is not a size", writeSize
		switch right := inCapitals(unit, sizeUnits); {
		case err != nil:
		case unit == "":
			what, write = Quote(text)+" has no unit", fmt.Sprintf("Write %q, %q or %q.", text+"B", text+"KiB", text+"MiB")
		case right != "":
			write = fmt.Sprintf("Write %q, in these capitals.", strings.TrimSuffix(text, unit)+right)
		}
		return 0, &Mistake{what, write}
	}
	size := n * factor
	if size != math.Trunc(size) || size > 1<<53 {
		return 0, &Mistake{"size " + Quote(text) + " is not a whole number of bytes below 8 PiB", writeSize}
	}
	return int64(size), nil
}

var sizeUnits = []string{"B", "kB", "KiB", "MB", "MiB", "GB", "GiB", "TB", "TiB"}

// inCapitals returns the unit that text equals except for case, "" for none.
func inCapitals(text string, units []string) string {
	i := slices.IndexFunc(units, func(u string) bool { return strings.EqualFold(u, text) })
	if i < 0 {
		return ""
	}
	return units[i]
}

// SizeText writes a size in the largest unit that divides it.
func SizeText(n int64) string {
	for i := len(sizeUnits) - 1; i > 0; i-- {
		unit := sizeUnits[i]
		if per := int64(bytesIn[unit]); n != 0 && n%per == 0 {
			return strconv.FormatInt(n/per, 10) + unit
		}
	}
	return strconv.FormatInt(n, 10) + "B"
}

// bytesIn are the bytes of the units of sizes.
var bytesIn = map[string]float64{"B": 1, "kB": 1e3, "MB": 1e6, "GB": 1e9, "TB": 1e12, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30, "TiB": 1 << 40}

// multiples are the letters that may follow a count, and the number of a rate.
var multiples = map[string]float64{"": 1, "k": 1e3, "M": 1e6, "G": 1e9}

// ParseCount reads a whole number, optionally of k, M or G: 10k is 10,000.
func ParseCount(text string) (int64, error) {
	n, multiple, err := CutNumber(text)
	factor, known := multiples[multiple]
	n *= factor
	if exact, e := strconv.ParseInt(text, 10, 64); e == nil && exact > 1<<53 {
		known = false // n is rounded
	}
	if err != nil || !known || n != math.Trunc(n) || n > 1<<53 {
		return 0, &Mistake{Quote(text) + " is not a whole number", writeCount}
	}
	return int64(n), nil
}

// ParseRate reads a number, optionally followed by k, M or G, per s, min or h. It returns the rate per second.
func ParseRate(text string) (float64, error) {
	amount, per, found := strings.Cut(text, "/")
	n, multiple, err := CutNumber(amount)
	if err != nil {
		return 0, &Mistake{Quote(text) + " is not a rate", writeRate}
	}
	factor, known := multiples[multiple]
	seconds := map[string]float64{"s": 1, "min": 60, "h": 3600}[per]
	switch {
	case !found:
		return 0, &Mistake{"rate " + Quote(text) + " does not say per what", writeRate}
	case !known || seconds == 0:
		return 0, &Mistake{Quote(text) + " is not a rate", writeRate}
	}
	return n * factor / seconds, nil
}

// ParseShare reads a percentage and returns it as a share: 0.01 for "1%".
func ParseShare(text string) (float64, error) {
	n, unit, err := CutNumber(text)
	if err != nil || unit != "%" {
		return 0, &Mistake{Quote(text) + " is not a percentage", writeShare}
	}
	return n / 100, nil
}

var errNumber = errors.New("not a number")

// CutNumber splits text after its leading decimal number. Signs, exponents and names such as NaN are not accepted.
func CutNumber(text string) (n float64, rest string, err error) {
	if len(text) > maxQuantity {
		return 0, "", errNumber
	}
	end := 0
	for end < len(text) && (text[end] >= '0' && text[end] <= '9' || text[end] == '.') {
		end++
	}
	if n, err = strconv.ParseFloat(text[:end], 64); err != nil {
		return 0, "", errNumber
	}
	return n, text[end:], nil
}

// Quote puts text in quotes for a message, cut to a readable length.
func Quote(text string) string {
	if runes := []rune(text[:min(len(text), 4*maxQuantity)]); len(runes) > maxQuantity {
		return strconv.Quote(string(runes[:maxQuantity])) + "…"
	}
	return strconv.Quote(text)
}
