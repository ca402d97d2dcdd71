package quantity

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestQuantities(t *testing.T) {
	for _, tt := range []struct{ got, want string }{
		{Duration(0), "0 s"},
		{Duration(12e-9), "12.0 ns"},
		{Duration(999e-9), "999 ns"},
		{Duration(999.6e-9), "1.00 µs"},
		{Duration(0.0012345), "1.23 ms"},
		{Duration(0.99999), "1.00 s"},
		{Duration(12.345), "12.3 s"},
		{Duration(59.9), "59.9 s"},
		{Duration(59.96), "1m 0s"},
		{Duration(3725), "1h 2m 5s"},
		{Percent(0), "0 %"},
		{Percent(0.00004), "0.004 %"},
		{Percent(0.01), "1 %"},
		{Percent(0.125), "12.5 %"},
		{Percent(0.231), "23.1 %"},
		{Percent(0.93), "93 %"},
		{Percent(0.9996), "99.96 %"},
		{Percent(1), "100 %"},
		{Digits(0), "0"},
		{Digits(9.996), "10.0"},
		{Digits(99.96), "100"},
		{Number(0), "0"},
		{Number(1.5), "1.5"},
		{Number(99.99), "99.99"},
		{Number(100.4), "100"},
		{Number(999.6), "1,000"},
		{Number(1234567), "1,234,567"},
		{Count(1, "op"), "1 op"},
		{Count(1234, "op"), "1,234 ops"},
	} {
		require.Equal(t, tt.want, tt.got)
	}
}
