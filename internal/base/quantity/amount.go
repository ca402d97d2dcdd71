package quantity

import (
	"math"
	"strconv"
	"strings"
)

// Thousands writes a whole number with thousands separators.
func Thousands[T int | int64 | uint32 | uint64](n T) string {
	return Grouped(strconv.FormatInt(int64(n), 10))
}

// Grouped puts thousands separators into the digits of a whole number.
func Grouped(digits string) string {
	first := 0
	if strings.HasPrefix(digits, "-") {
		first = 1
	}
	for i := len(digits) - 3; i > first; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return digits
}

// Whole writes a rate as a whole number, or with three digits below 100.
func Whole(f float64) string {
	if f >= 100 {
		return Grouped(strconv.FormatFloat(math.Round(f), 'f', 0, 64))
	}
	return Digits(f)
}

// SI writes a quantity with three digits and a decimal prefix: 83.2k.
func SI(f float64) string {
	for _, prefix := range []string{"", "k", "M", "G"} {
		if f < 999.5 {
			return Digits(f) + prefix
		}
		f /= 1000
	}
	return Digits(f) + "T"
}

// Bytes writes bytes: 2.31 MB.
func Bytes[T int64 | uint64](bytes T) string {
	if bytes < 1000 {
		return Thousands(bytes) + " B"
	}
	text := SI(float64(bytes))
	return text[:len(text)-1] + " " + text[len(text)-1:] + "B"
}

// Blocks writes bytes as plans do if they are a whole number of KiB or MiB, else as Bytes does.
func Blocks(bytes int) string {
	switch {
	case bytes > 0 && bytes%(1<<20) == 0:
		return Thousands(bytes>>20) + " MiB"
	case bytes > 0 && bytes%(1<<10) == 0:
		return Thousands(bytes>>10) + " KiB"
	}
	return Bytes(int64(bytes))
}

// Count writes a number with its noun: 1 op, 1,234 ops.
func Count[T int | int64 | uint32 | uint64](n T, noun string) string {
	if n != 1 {
		noun += "s"
	}
	return Thousands(n) + " " + noun
}

// Amount writes a quantity in its unit: "s", "us", "bytes" or "" for a plain number.
func Amount(v float64, unit string) string {
	switch {
	case v < 0:
		return "-" + Amount(-v, unit)
	case unit == "s":
		return Duration(v)
	case unit == "us":
		return Duration(v / 1e6)
	case unit == "bytes":
		return Bytes(int64(v))
	case v >= 1e15:
		return SI(v)
	case v == math.Trunc(v):
		return Thousands(int64(v))
	}
	return Whole(v)
}
