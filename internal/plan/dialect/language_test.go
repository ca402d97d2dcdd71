package dialect_test

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/stretchr/testify/require"
	"github.com/zclconf/go-cty/cty"

	"github.com/loadgen/loadgen/internal/plan/dialect"
)

var update = flag.Bool("update", false, "rewrite the golden files in testdata")

// read returns what the blocks of a text say, or what is wrong with it. Lines that begin with "# -var ", "# file ", "# env " and "# variant " give values of
// variables.
func read(text string) string {
	var in dialect.Inputs
	for line := range strings.Lines(text) {
		kind, given, _ := strings.Cut(strings.TrimPrefix(strings.TrimSuffix(line, "\n"), "# "), " ")
		switch kind {
		case "-var":
			in.Flags = append(in.Flags, given)
		case "file":
			in.Files = append(in.Files, dialect.VarFile{Name: "vars", Text: []byte(given)})
		case "env":
			in.Environ = append(in.Environ, strings.ReplaceAll(given, `\xff`, "\xff"))
		case "variant":
			in.Variant = map[string]dialect.Given{given: dialect.VariantValue("variant small", cty.NumberIntVal(9), hcl.Range{Filename: "t"})}
		}
	}
	var r *dialect.Reader
	blocks := map[string][]*hclsyntax.Block{}
	r = dialect.NewReader(dialect.Words{
		Names: func(kind string) (all []string) {
			for _, b := range blocks[kind] {
				all = append(all, b.Labels[0])
			}
			return all
		},
		Labelled: map[string]string{"part": `Write part "NAME" { … }.`},
		Meant: func(_, word string) string {
			if word == "ttl" {
				return "Write duration."
			}
			return ""
		},
	})
	var said []string
	if body := r.Parse([]byte(text), "t"); body != nil {
		for _, b := range body.Blocks {
			blocks[b.Type] = append(blocks[b.Type], b)
		}
		r.Declare(blocks["variable"], blocks["locals"], in)
		for _, b := range blocks["thing"] {
			said = append(said, b.Labels[0]+thing(r.Block(b, "thing."+b.Labels[0], "thing "+dialect.Quote(b.Labels[0]))))
		}
	}
	if !r.Failed() {
		return strings.Join(said, "\n")
	}
	var wrong []string
	for _, d := range r.Result() {
		line := fmt.Sprintf("%s:%d,%d: %s. %s", d.Subject.Filename, d.Subject.Start.Line, d.Subject.Start.Column, d.Summary, d.Detail)
		if len(wrong) < 3 || d.Summary == "and more" {
			wrong = append(wrong, dialect.Printable(line))
		}
	}
	return strings.Join(wrong, "\n")
}

// thing reads a block.
func thing(b *dialect.Block) string {
	b.Expect([]string{"text", "flag", "texts", "count", "unsigned", "duration", "size", "rate", "share", "thing", "must"}, []string{"once"}, "step", "part")
	var (
		text     string
		flag     bool
		texts    []string
		count    int
		unsigned uint64
		duration time.Duration
		size     int64
		rate     float64
		share    float64
	)
	b.Text("text", &text)
	b.Flag("flag", &flag)
	b.Texts("texts", &texts)
	dialect.Integer(b, "count", &count)
	b.Unsigned("unsigned", &unsigned)
	b.Duration("duration", &duration)
	dialect.Size(b, "size", &size)
	b.Rate("rate", &rate)
	b.Share("share", &share)
	said := ""
	for _, is := range []struct {
		name  string
		value any
	}{
		{"text", fmt.Sprintf("%.60q", text)},
		{"flag", flag},
		{"texts", texts},
		{"count", count},
		{"unsigned", unsigned},
		{"duration", duration},
		{"size", dialect.SizeText(size)},
		{"rate", rate},
		{"share", share},
	} {
		if b.Has(is.name) {
			said += fmt.Sprintf(" %s=%v", is.name, is.value)
		}
	}
	if b.Has("must") {
		b.Require("text", "Write text.")
	}
	if b.Has("thing") {
		said += " thing=" + b.Named("thing")
	}
	if once := b.Inner("once"); once != nil {
		said += " once(" + thing(once) + ")"
	}
	for _, step := range b.Each("step") {
		said += " step(" + thing(step) + ")"
	}
	for _, part := range b.Labelled("part", true) {
		said += " part " + part.Label + "(" + thing(part.Block) + ")"
	}
	return said
}

// TestLanguage reads each text of testdata/language.hcl: what it says, or what is wrong, where, and what to write instead.
func TestLanguage(t *testing.T) {
	all, err := os.ReadFile("testdata/language.hcl")
	require.NoError(t, err)
	var got strings.Builder
	for _, section := range strings.Split(string(all), "### ")[1:] {
		name, text, _ := strings.Cut(section, "\n")
		fmt.Fprintf(&got, "### %s\n%s\n", name, read(text))
	}
	const golden = "testdata/language.txt"
	if *update {
		require.NoError(t, os.WriteFile(golden, []byte(got.String()), 0o644))
	}
	want, err := os.ReadFile(golden)
	require.NoError(t, err)
	require.Equal(t, string(want), got.String())
}

// What would cost the parser or the evaluator more than it is worth is refused before it does.
func TestBounds(t *testing.T) {
	repeat := strings.Repeat
	in := func(value string) string { return `thing "a" { texts = ` + value + " }\n" }
	for says, text := range map[string]string{
		"1048577 bytes are more than a plan may have":   repeat("\n", 1<<20+1),
		"more than 20000 words and signs":               repeat("a = 1\n", 6000),
		"a word or string of 4097 bytes":                in(`["` + repeat("x", 4097) + `"]`),
		"a string, comment or line of more than 16 KiB": "/*" + repeat("x\n", 9<<10) + "*/",
		"brackets nested more than 100 deep":            in(repeat("[", 101)),
		"an expression of more than 100 operators":      in("1" + repeat("+1", 101)),
		"a string of more than 4096 bytes":              in(`"${"` + repeat("x", 3000) + `"}${"` + repeat("x", 3000) + `"}"`),
		"a string with U+202E, a character":             in("\"\u202e\""),
		"arguments. Write at most 256":                  in(`format("", range(299)...)`),
		"an expression that is nested too deeply":       "locals {\n a0 = 1\n" + chain(500) + "}\n",
		"the plan's values need more than 16 MiB":       "locals {\n s = \"" + repeat("x", 4000) + "\"\n a = [for i in range(1000) : local.s]\n" + doubled(9) + "}\n",
		"a collection of 10001 elements":                in(`concat(range(10000), [1])`),
	} {
		require.Contains(t, read(text), says)
	}
	many := read(repeat("locals {\n x {}\n}\n", 200))
	require.Contains(t, many, "and more. Mend these first.")
}

// chain returns locals that each use the one behind it.
func chain(n int) string {
	var b strings.Builder
	for i := n; i > 0; i-- {
		fmt.Fprintf(&b, " a%d = local.a%d + 1\n", i, i-1)
	}
	return b.String()
}

// doubled returns locals that each have what a has.
func doubled(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, " b%d = concat(local.a, [])\n", i)
	}
	return b.String()
}

func TestSelectors(t *testing.T) {
	for text, want := range map[string]string{
		`up`:                         `up map[]`,
		`up {}`:                      `up map[]`,
		`a:b_c{x="1", y = "a\"\\n"}`: `a:b_c map[x:1 y:a"\n]`,
		`{x="1"}`:                    "no metric's name at its beginning",
		`up x`:                       `"x" after the metric's name is not {LABEL="VALUE",…}`,
		`up{x=1}`:                    `"x=1" is not LABEL="VALUE"`,
		`up{x="1",x="2"}`:            "label x is there twice",
		`up{x="1" y="2"}`:            `"y=\"2\"" where a comma should be`,
	} {
		s, err := dialect.ParseSelector(text)
		got := fmt.Sprint(s.Metric, " ", s.Labels)
		if err != nil {
			got = err.Error()
		}
		require.Equal(t, want, got, text)
	}
}
