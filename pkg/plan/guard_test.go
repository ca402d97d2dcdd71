package plan_test

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/hashicorp/hcl/v2"
	"github.com/loadgen/loadgen/internal/servertest"
	"github.com/loadgen/loadgen/pkg/plan"
	"github.com/stretchr/testify/require"
)

// small is a valid plan with a hole for hostile text.
func small(hostile string) string {
	return `plan "p" {}
target "t" { driver = "null" }
dataset "d" {
  keys { count = 10 }
  values { size = 10 }
}
phase "x" {
  target  = target.t
  dataset = dataset.d
  ops     = { get = 1 }
  closed { iterations = 1 }
}
` + hostile + "\n"
}

// inPhase is a plan whose phase has the given arguments.
func inPhase(arguments string) string {
	return strings.Replace(small(""), "  closed { iterations = 1 }\n", arguments+"\n", 1)
}

func locals(expression string) string { return small("locals {\n  a = " + expression + "\n}") }

// chain is a chain of n locals, each of which holds the previous one twice.
func chain(n int, first, twice string) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, " l%d = "+twice+"\n", i+1, i, i)
	}
	return small("locals {\n l0 = " + first + "\n" + b.String() + "}")
}

func nestedLists(n int) string { return chain(n, "[1, 2]", "[local.l%d, local.l%d]") }

// repeated returns n numbered lines.
func repeated(n int, format string) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, format+"\n", i)
	}
	return b.String()
}

func repeat(s string, n int) string { return strings.Repeat(s, n) }

// nestedFor is a for within a for within a for.
func nestedFor(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "[for x%d in [0,1,2,3,4,5,6,7,8,9] : ", i)
	}
	return locals(b.String() + "1" + repeat("]", n))
}

// hostile are plans that try to exhaust the machine. Each returns a plan of about n times its unit.
var hostile = []struct {
	name string
	n    int
	text func(n int) string
}{
	{"parentheses", 200_000, func(n int) string { return locals(repeat("(", n)) }},
	{"parentheses, closed", 100_000, func(n int) string { return locals(repeat("(", n) + "1" + repeat(")", n)) }},
	{"brackets", 200_000, func(n int) string { return locals(repeat("[", n)) }},
	{"braces", 200_000, func(n int) string { return locals(repeat("{", n)) }},
	{"templates", 50_000, func(n int) string { return locals(repeat(`"${`, n)) }},
	{"mismatched brackets", 60_000, func(n int) string { return locals(repeat("([}", n)) }},
	{"indices", 60_000, func(n int) string { return locals("[1]" + repeat("[0]", n)) }},
	{"indices by name", 60_000, func(n int) string { return locals("[1]" + repeat("[local.b]", n)) }},
	{"attributes", 100_000, func(n int) string { return locals("local.b" + repeat(".c", n)) }},
	{"not", 200_000, func(n int) string { return locals(repeat("!", n) + "true") }},
	{"minus", 200_000, func(n int) string { return locals(repeat("-", n) + "1") }},
	{"sum", 100_000, func(n int) string { return locals("1" + repeat("+1", n)) }},
	{"conditions", 50_000, func(n int) string { return locals(repeat("true ? 1 : ", n) + "1") }},
	{"splats", 20_000, func(n int) string { return locals("[]" + repeat("[*]", n)) }},
	{"few splats", 30, func(n int) string { return locals("[[]]" + repeat("[*]", n)) }},
	{"attribute splats", 30, func(n int) string { return locals("local.b" + repeat(".*", n)) }},
	{"nested for", 8, nestedFor},
	{"nested for, deep", 5_000, nestedFor},
	{"doubling strings", 24 * 2, func(n int) string { return chain(n, `"xxxxxxxxxxxxxxxx"`, `"${local.l%d}${local.l%d}"`) }},
	{"doubling lists", 24 * 2, func(n int) string { return chain(n, "[1, 2]", "concat(local.l%d, local.l%d)") }},
	{"doubling nested lists", 24 * 2, nestedLists},
	{"deep nested lists", 500, nestedLists},
	{"blocks", 20_000, func(n int) string { return small(repeat("b {\n}\n", n)) }},
	{"blocks with names", 20_000, func(n int) string { return small(repeated(n, `phase "p%d" {}`)) }},
	{"blocks within blocks", 20_000, func(n int) string { return small(repeat("b {\n", n) + repeat("}\n", n)) }},
	{"wrong phases", 2_000, func(n int) string { return small(repeated(n, `phase "p%d" {}`)) }},
	{"unknown attributes", 3_000, func(n int) string { return small("plan \"q\" {\n" + repeated(n, "a%d = 1") + "}") }},
	{"unknown names", 3_000, func(n int) string { return small("locals {\n" + repeated(n, "a%d = nothing") + "}") }},
	{"unknown functions", 3_000, func(n int) string { return small("locals {\n" + repeated(n, "a%d = nothing()") + "}") }},
	{"failing functions", 2_500, func(n int) string { return small("locals {\n" + repeated(n, `a%d = range(1e9)`) + "}") }},
	{"failing formats", 2_000, func(n int) string {
		return small("locals {\n" + repeated(n, `a%d = format("%%4000d%%4000d", 1, 1)`) + "}")
	}},
	{"many ranges", 2_000, func(n int) string { return small("locals {\n" + repeated(n, `a%d = range(9999)`) + "}") }},
	{"syntax errors", 4_000, func(n int) string { return small(repeated(n, "a%d = =")) }},
	{"syntax errors in blocks", 3_000, func(n int) string { return small(repeated(n, "a%d { ] }")) }},
	{"escapes", 2_000, func(n int) string { return small("locals {\n" + repeated(n, `a%d = "\z\z\z"`) + "}") }},
	{"equal lists", 24, func(n int) string {
		return small("locals {\n a = range(9000)\n" + repeated(n*100, "b%d = local.a == local.a") + "}")
	}},
	{"long conditions", 300, func(n int) string {
		return small("locals {\n a = \"" + repeat("x", 4000) + "\"\n}\n" + repeated(n, "assert \"a%d\" { that = \"${local.a}${local.a}\" == local.a }"))
	}},
	{"same labels", 2_000, func(n int) string { return small(repeat("phase \"p\" {}\n", n)) }},
	{"same locals", 3_000, func(n int) string { return small("locals {\n" + repeat("a = 1\n", n) + "}") }},
	{"heredoc", 1 << 20, func(n int) string { return small("locals {\n a = <<E\n" + repeat("x", n-400) + "\nE\n}") }},
	{"heredoc of lines", 1 << 19, func(n int) string { return small("locals {\n a = <<E\n" + repeat("\n", n-400) + "E\n}") }},
	{"string", 1 << 20, func(n int) string { return locals(`"` + repeat("x", n-400) + `"`) }},
	{"digits", 1 << 20, func(n int) string { return locals(repeat("9", n-400)) }},
	{"comment", 1 << 20, func(n int) string { return small("/*" + repeat("x ", n/2-200) + "*/") }},
	{"invalid characters", 200_000, func(n int) string { return small(repeat("\x80", n)) }},
	{"commas", 500_000, func(n int) string { return locals("[" + repeat(",", n)) }},
	{"words", 200_000, func(n int) string { return locals("[" + repeat("a,", n) + "]") }},
	{"too long", 2 << 20, func(n int) string { return repeat("#\n", n/2) }},
	{"chain of locals backwards", 3_000, func(n int) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, "a%d = local.a%d\n", i, i+1)
		}
		return small("locals {\n" + b.String() + fmt.Sprintf("a%d = 1\n}", n))
	}},
}

// Twice the text takes about twice the memory, whatever the text. A difference of up to 1 MiB is ignored: there constants dominate.
func TestHostilePlans(t *testing.T) {
	for _, h := range hostile {
		t.Run(h.name, func(t *testing.T) {
			half, _ := resolveAllocates(h.text(h.n / 2))
			allocated, diags := resolveAllocates(h.text(h.n))
			t.Logf("%.1f MiB, %d diagnostics: %s", float64(allocated)/(1<<20), len(diags), diags[0].Summary)
			require.True(t, diags.HasErrors())
			require.LessOrEqual(t, len(diags), 2*101) // of Parse, and of Resolve
			require.LessOrEqual(t, allocated, uint64(64<<20))
			require.LessOrEqual(t, float64(allocated), 2.5*float64(half)+1<<20)
		})
	}
}

// resolveAllocates returns the bytes that Parse and Resolve allocate.
func resolveAllocates(src string) (uint64, hcl.Diagnostics) {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, diags := resolve(src, "plan.hcl", plan.Vars{})
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc, diags
}

// hostileValues are single arguments beyond all bounds, with a word that their diagnostic must have.
var hostileValues = []struct{ name, text, says string }{
	{"sessions", "  closed {\n sessions = 1e15\n iterations = 1\n }", "sessions"},
	{"text that turns the direction of writing", "  when = \"a\\u202eb\" == \"c\"", "Write the text without it"},
	{"text that moves a cursor, as it stands", "  when = \"a\u009b2Jb\" == \"c\"", "U+009B"},
	{"name that turns the direction of writing", "  when = { \"a\\u2066\" = 1 } == {}", "U+2066"},
	{"sessions beyond int64", "  closed {\n sessions = 1e300\n iterations = 1\n }", "too large"},
	{"sessions infinite", "  closed {\n sessions = 1e400\n iterations = 1\n }", "10^308"},
	{"sessions by a million digits", "  closed {\n sessions = 1e1000000000\n iterations = 1\n }", "number"},
	{"sessions negative", "  closed {\n sessions = -1\n iterations = 1\n }", "sessions = -1"},
	{"sessions fraction", "  closed {\n sessions = 1.5\n iterations = 1\n }", "not a whole number"},
	{"sessions NaN", "  closed {\n sessions = \"NaN\"\n iterations = 1\n }", "sessions"},
	{"iterations", "  closed { iterations = 1e18 }", "iterations"},
	{"pipeline", "  closed {\n pipeline = 5000\n iterations = 1\n }", "pipeline"},
	{"duration NaN", "  closed { duration = \"NaNs\" }", "not a duration"},
	{"duration negative", "  closed { duration = \"-1s\" }", "not a duration"},
	{"duration negative number", "  closed { duration = -1 }", "negative"},
	{"duration overflow", "  closed { duration = \"9999999999999h\" }", "not a duration"},
	{"duration long", "  closed { duration = \"9000h\" }", "8760h"},
	{"duration number overflow", "  closed { duration = 1e300 }", "seconds"},
	{"duration wrong unit", "  closed { duration = \"10parsec\" }", "not a duration"},
	{"duration without unit", "  closed { duration = \"10\" }", "no unit"},
	{"duration of size", "  closed { duration = \"10MiB\" }", "not a duration"},
	{"rate infinite", "  open {\n rate = \"Inf/s\"\n duration = \"1s\"\n }", "not a rate"},
	{"rate NaN", "  open {\n rate = \"NaN/s\"\n duration = \"1s\"\n }", "not a rate"},
	{"rate zero", "  open {\n rate = 0\n duration = \"1s\"\n }", "above 0"},
	{"rate huge", "  open {\n rate = \"2G/s\"\n duration = \"1s\"\n }", "rate"},
	{"rate per nothing", "  open {\n rate = \"50k\"\n duration = \"1s\"\n }", "per what"},
	{"rate negative", "  open {\n rate = \"-5/s\"\n duration = \"1s\"\n }", "not a rate"},
	{"in flight", "  open {\n rate = 1\n duration = \"1s\"\n in_flight = 17\n }", "sessions × pipeline = 16"},
	{"share over one", "  closed { iterations = 1 }\n max_bad = \"101%\"", "max_bad"},
	{"share NaN", "  closed { iterations = 1 }\n max_bad = \"NaN%\"", "not a percentage"},
	{"hits negative", "  closed { iterations = 1 }\n expect_hits = -0.5", "negative"},
	{"weight negative", "  closed { iterations = 1 }\n when = { a = -1 }.a == -1 ? \"maybe\" : true", "when"},
	{"format width", "  closed { iterations = length(format(\"%1000000000d\", 1)) }", "not a verb"},
	{"format sum of widths", "  closed { iterations = length([format(\"%4000d%4000d\", 1, 2)]) }", "longer than"},
	{"format by star", "  closed { iterations = length([format(\"%*d\", 1000000000, 2)]) }", "not a verb"},
	{"range", "  closed { iterations = length(range(1e9)) }", "more than 10000"},
	{"range of tiny steps", "  closed { iterations = length(range(0, 1, 1e-300)) }", "more than 10000"},
	{"range backwards", "  closed { iterations = length(range(0, 1, -1)) }", "above 0"},
	{"text of a huge number", "  closed { iterations = length([\"${1e999999999}\"]) }", "infinite"},
	{"power by products", "  closed { iterations = 1e200 * 1e200 }", "10^308"},
	{"join", "  closed { iterations = length([join(\"xxxxxxxxxxxxxxxxxxxxxxxx\", [for x in range(10000) : \"x\"])]) }", "longer than"},
	{"many arguments", "  closed { iterations = coalesce(range(10000)...) }", "arguments"},
	{"division by zero", "  closed { iterations = 1 / 0 }", "infinite"},
}

func TestHostileValues(t *testing.T) {
	for _, h := range hostileValues {
		t.Run(h.name, func(t *testing.T) {
			src := inPhase(h.text)
			allocated, diags := resolveAllocates(src)
			require.True(t, diags.HasErrors())
			require.Contains(t, formatted(t, diags, nil), h.says)
			require.LessOrEqual(t, allocated, uint64(32<<20))
		})
	}
}

// The lexer's windows may end anywhere: a valid text stays valid wherever a window cuts it.
func TestWindowsCutAnywhere(t *testing.T) {
	plan1 := small("/* ( [ { \" << */\n# \" (\nlocals {\n a = <<E\n ( ${1 + 1} \"\nE\n b = \"( ${\"}\"} /* \"\n}\n// end \"\n")
	step := 1
	if !servertest.Whole() {
		step = 8
	}
	for pad := 0; pad < len(plan1); pad += step {
		src := repeat("# x\n", (16<<10)/4-1-len(plan1)/4) + "#" + repeat("x", pad) + "\n" + plan1
		good(t, src, plan.Vars{})
	}
}

// Comments may be long, as long as they are lines.
func TestLongComments(t *testing.T) {
	good(t, repeat("# x\r\n", 15_000)+small(""), plan.Vars{})
	good(t, repeat("// "+repeat("(", 1000)+"\n", 900)+small(""), plan.Vars{})
	_, diags := resolve("# "+repeat("x", 20_000)+"\n"+small(""), "plan.hcl", plan.Vars{})
	require.Contains(t, diags.Error(), "more than 16 KiB")
}
