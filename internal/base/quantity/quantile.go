package quantity

import (
	"math"
	"strconv"
	"strings"
)

// QuantileDigits is the most digits that a quantile's name has: p999999.
const QuantileDigits = 6

// Quantile returns the share that a quantile's name stands for: p95 is 0.95, p9999 is 0.9999. A name is "p" and 2 to 6 digits, of which the last may
// be 0 only if there are two: p50, never p500.
func Quantile(name string) (share float64, ok bool) {
	digits, p := strings.CutPrefix(name, "p")
	if !p || len(digits) < 2 || len(digits) > QuantileDigits || strings.Trim(digits, "0123456789") != "" {
		return 0, false
	}
	share, err := strconv.ParseFloat("0."+digits, 64)
	return share, err == nil && QuantileName(share) == name
}

// QuantileName returns the name of a quantile; "" unless it is above 0, below 1, and has at most six decimals.
func QuantileName(share float64) string {
	if !(share > 0 && share < 1) {
		return ""
	}
	text := strconv.FormatFloat(share, 'f', QuantileDigits, 64)
	if exact, err := strconv.ParseFloat(text, 64); err != nil || math.Abs(exact-share) > 1e-12 {
		return ""
	}
	digits := strings.TrimRight(text[2:], "0")
	return "p" + digits + strings.Repeat("0", max(2-len(digits), 0))
}

// QuantileText returns a quantile's name for people: p99.9 for p999.
func QuantileText(name string) string {
	if _, ok := Quantile(name); !ok || len(name) <= len("p99") {
		return name
	}
	return name[:3] + "." + name[3:]
}
