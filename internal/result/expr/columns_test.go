package expr_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/loadgen/loadgen/internal/result/expr"
)

func TestFormat(t *testing.T) {
	for _, c := range []struct {
		value float64
		unit  string
		want  string
	}{
		{0, "/s", "0"},
		{816.7, "/s", "817"},
		{816.7, "/min", "49,002"},
		{0.0123456, "ms", "12.3"},
		{0.0123456, "us", "12,346"},
		{0.0000012, "s", "1.2e-06"},
		{0.9996, "%", "100 %"},
		{0.1234, "%", "12.3 %"},
		{-0.1234, "%", "-12.3 %"},
		{9.996, "x", "10.0"},
		{99.96, "", "100"},
		{1234567, "", "1,234,567"},
		{-1234567, "", "-1,234,567"},
		{3 << 20, "MiB", "3.00"},
		{1.5, "furlongs", "1.50"},
	} {
		require.Equal(t, c.want, expr.Format(c.value, c.unit), "%v in %q", c.value, c.unit)
	}
	require.Equal(t, []string{"us", "ms", "s"}, []string{expr.UnitOf(1e-5), expr.UnitOf(0.01), expr.UnitOf(1)})
}
