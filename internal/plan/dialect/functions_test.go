package dialect_test

import (
	"strings"
	"testing"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/loadgen/loadgen/internal/plan/dialect"
	"github.com/stretchr/testify/require"
	"github.com/zclconf/go-cty/cty"
)

func evaluate(t *testing.T, text string) (cty.Value, hcl.Diagnostics) {
	t.Helper()
	x, diags := hclsyntax.ParseExpression([]byte(text), "x", hcl.InitialPos)
	require.Empty(t, diags)
	return x.Value(&hcl.EvalContext{Functions: dialect.Functions()})
}

func TestFunctions(t *testing.T) {
	cases := []struct {
		text string
		want cty.Value
	}{
		{`duration("20ms")`, cty.NumberFloatVal(0.02)},
		{`duration("1m30s")`, cty.NumberIntVal(90)},
		{`duration("0")`, cty.NumberIntVal(0)},
		{`size("64MiB")`, cty.NumberIntVal(64 << 20)},
		{`size("1.5KiB")`, cty.NumberIntVal(1536)},
		{`size("2kB")`, cty.NumberIntVal(2000)},
		{`size("200B")`, cty.NumberIntVal(200)},
		{`size("1TiB") / size("1GiB")`, cty.NumberIntVal(1024)},
		{`size("1TB") - size("1GB") - size("1MB") - size("1kB")`, cty.NumberIntVal(998_998_999_000)},
		{`rate("50k/s")`, cty.NumberIntVal(50_000)},
		{`rate("300/min")`, cty.NumberIntVal(5)},
		{`rate("1.8M/h")`, cty.NumberIntVal(500)},
		{`rate("1G/s")`, cty.NumberIntVal(1e9)},
		{`percent("1%")`, cty.NumberFloatVal(0.01)},
		{`min(3, 1, 2)`, cty.NumberIntVal(1)},
		{`max(3, 1, 2)`, cty.NumberIntVal(3)},
		{`floor(1.9) + ceil(1.1) + abs(-1)`, cty.NumberIntVal(4)},
		{`length([1, 2])`, cty.NumberIntVal(2)},
		{`concat([1], [2, 3])[2]`, cty.NumberIntVal(3)},
		{`join("-", range(3))`, cty.StringVal("0-1-2")},
		{`join("-", [])`, cty.StringVal("")},
		{`range(1, 2, 0.5)[1]`, cty.NumberFloatVal(1.5)},
		{`length(range(0))`, cty.NumberIntVal(0)},
		{`length(range(10000))`, cty.NumberIntVal(10_000)},
		{`upper(lower("aB"))`, cty.StringVal("AB")},
		{`contains(["a"], "a")`, cty.True},
		{`coalesce(null, "a")`, cty.StringVal("a")},
		{`tonumber("2") + 1`, cty.NumberIntVal(3)},
		{`tostring(2.5)`, cty.StringVal("2.5")},
		{`format("%s=%05d %.2f %x 100%% %q", "a", 42, 1 / 4, 255, "b")`, cty.StringVal(`a=00042 0.25 ff 100% "b"`)},
		{`format("plain")`, cty.StringVal("plain")},
		{`format("%-5s|%+d|%5.1f", "a", 1, 2)`, cty.StringVal("a    |+1|  2.0")},
	}
	for _, c := range cases {
		t.Run(c.text, func(t *testing.T) {
			v, diags := evaluate(t, c.text)
			require.Empty(t, diags)
			require.True(t, v.RawEquals(c.want), "%#v", v)
		})
	}
}

func TestFunctionsRefuse(t *testing.T) {
	cases := []struct{ text, says string }{
		{`duration("10")`, "has no unit"},
		{`duration("+1s")`, "not a duration"},
		{`size("10")`, `has no unit; write "10B"`},
		{`size("10mb")`, "not a size"},
		{`size("1e3B")`, "not a size"},
		{`size("9000000000TiB")`, "below 8 PiB"},
		{`size(".B")`, "not a size"},
		{`rate("10")`, "per what"},
		{`rate("10/d")`, "not a rate"},
		{`rate("10K/s")`, "not a rate"},
		{`percent("1")`, "not a percentage"},
		{`percent("-1%")`, "not a percentage"},
		{`range()`, "one to three"},
		{`range(1, 2, 3, 4)`, "one to three"},
		{`range(0, 1, 0)`, "above 0"},
		{`range(10001)`, "more than 10000"},
		{`range(1 / 0)`, "too large"},
		{`join("-", "a")`, "not a list"},
		{`join("-", [null])`, "holds null"},
		{`join("-", [[1]])`, "holds a value of type tuple"},
		{`format("%d", 1.5)`, "whole number"},
		{`format("%d", 1e19)`, "whole number"},
		{`format("%d", "x")`, "number is required"},
		{`format("%s", null)`, "null"},
		{`format("%f", 1 / 0)`, "too large"},
		{`format("%v", 1)`, "not a verb"},
		{`format("%", 1)`, "not a verb"},
		{`format("%[1]d", 1)`, "not a verb"},
		{`format("%5000d", 1)`, "not a verb"},
		{`format("%.5000f", 1)`, "not a verb"},
		{`format("%d", 1, 2)`, "2 values, but 1 verbs"},
		{`format("%d")`, "more verbs than values"},
		{`secret("NAME")`, "no function named"},
	}
	for _, c := range cases {
		t.Run(c.text, func(t *testing.T) {
			_, diags := evaluate(t, c.text)
			require.True(t, diags.HasErrors())
			require.Contains(t, diags.Error(), c.says)
		})
	}
}

// Messages quote only a short part of a value, however long it is.
func TestMessagesAreShort(t *testing.T) {
	_, diags := evaluate(t, `duration("`+strings.Repeat("x", 4000)+`")`)
	require.Less(t, len(diags.Error()), 300)
}
