// Package quantity writes measurements for people: counts with thousands separators, the rest with three significant digits, and the unit
// after a space.
package quantity

import (
	"math"
	"strconv"
	"strings"
)

// Duration writes seconds ≥ 0: 1.23 ms, or 2m 5s from a minute on.
func Duration(seconds float64) string {
	switch {
	case seconds == 0:
		return "0 s"
	case seconds < 0.9995e-6:
		return Digits(seconds*1e9) + " ns"
	case seconds < 0.9995e-3:
		return Digits(seconds*1e6) + " µs"
	case seconds < 0.9995:
		return Digits(seconds*1e3) + " ms"
	case seconds < 59.95:
		return Digits(seconds) + " s"
	}
	whole := int64(math.Round(seconds))
	text := strconv.FormatInt(whole%60, 10) + "s"
	if whole >= 60 {
		text = strconv.FormatInt(whole/60%60, 10) + "m " + text
	}
	if whole >= 3600 {
		text = strconv.FormatInt(whole/3600, 10) + "h " + text
	}
	return text
}

// Percent writes a share as a percentage. Shares near 0 and 1 keep enough digits to differ from them.
func Percent(share float64) string {
	decimals := 1
	for rest := min(share, 1-share); rest > 0 && rest < 0.01 && decimals < 6; rest *= 10 {
		decimals++
	}
	text := strconv.FormatFloat(100*share, 'f', decimals, 64)
	return strings.TrimSuffix(strings.TrimRight(text, "0"), ".") + " %"
}

// Digits writes three significant digits of 0 ≤ f < 999.5, and all digits before the point of larger numbers.
func Digits(f float64) string {
	switch {
	case f == 0:
		return "0"
	case f < 9.995:
		return strconv.FormatFloat(f, 'f', 2, 64)
	case f < 99.95:
		return strconv.FormatFloat(f, 'f', 1, 64)
	}
	return strconv.FormatFloat(f, 'f', 0, 64)
}

// Number writes a count or a rate with thousands separators; below 100 with up to two decimals.
func Number(f float64) string {
	if f < 100 {
		return strconv.FormatFloat(math.Round(f*100)/100, 'f', -1, 64)
	}
	return Grouped(strconv.FormatFloat(math.Round(f), 'f', 0, 64))
}
