package form_test

import (
	"math/rand/v2"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/loadgen/loadgen/internal/plan/values"
	"github.com/loadgen/loadgen/pkg/driver"
	"github.com/loadgen/loadgen/pkg/driver/form"
)

func request(t testing.TB) *driver.Request {
	r, err := values.New(map[string]string{"title": `list(a "b")`, "id": "uuid", "n": "int(7, 7)"}, "", "")
	require.NoError(t, err)
	return &driver.Request{N: 41, Key: []byte("key:7"), Value: &driver.Value{Size: len(r.Append(nil, 5)), Seed: 5, Maker: r}}
}

func TestAppend(t *testing.T) {
	req := request(t)
	whole := string(req.Value.AppendTo(nil))
	for text, want := range map[string]string{
		"":                             "",
		"plain":                        "plain",
		"{key}":                        "key:7",
		"a{key}b{n}c":                  "akey:7b41c",
		"{run}/{run}":                  "r1/r1",
		"{{{key}}}:visits":             "{key:7}:visits",
		"{{}}":                         "{}",
		"{value}":                      whole,
		"ü{key}":                       "ükey:7",
		"{field.title}":                `a "b"`,
		"{field.n}":                    "7",
		"{field.other}":                "",
		`{{"id": "{key}", "at": {n}}}`: `{"id": "key:7", "at": 41}`,
	} {
		parsed, err := form.Parse(text)
		require.NoError(t, err, text)
		require.Equal(t, want, string(parsed.Append(nil, req, "r1")), text)
		require.Equal(t, want, string(parsed.With("r1").Append(nil, req, "other")), text)
		require.Equal(t, text, parsed.String())
	}
	id, err := form.Parse("{field.id}")
	require.NoError(t, err)
	require.Contains(t, whole, `"`+string(id.Append(nil, req, ""))+`"`, "the field is the one that the whole record has")
}

func TestParseNamesThePlaceAndTheRemedy(t *testing.T) {
	for text, says := range map[string]string{
		"{kye}":        "unknown placeholder {kye} at character 1; write {key}, {value}",
		"ü {Key}":      "unknown placeholder {Key} at character 3",
		"a{":           "the { at character 2 is not closed",
		"ab}":          "the } at character 3 closes nothing",
		"{}":           "unknown placeholder {} at character 1",
		"{field.}":     "unknown placeholder {field.}",
		"{{key}":       "the } at character 6 closes nothing",
		"\xff":         "not UTF-8",
		"{key} {valu}": "unknown placeholder {valu} at character 7; write {key}, {value}, {run}, {n}, {field.NAME}, {row.NAME}, {captured.NAME} or {secret.NAME}, and {{ or }} for a brace",
	} {
		_, err := form.Parse(text)
		require.ErrorContains(t, err, says, text)
	}
}

func TestWhatATemplateHas(t *testing.T) {
	parsed, err := form.Parse("{key}{value}{field.b}{key}x{field.a}")
	require.NoError(t, err)
	require.Equal(t, 2, parsed.Count(form.Key))
	require.True(t, parsed.Stores())
	require.Equal(t, []string{"b", "a"}, parsed.Names(nil, form.Field))
	for text, stores := range map[string]bool{"{key}{n}{run}": false, "{value}": true, "{field.x}": true} {
		parsed, err := form.Parse(text)
		require.NoError(t, err)
		require.Equal(t, stores, parsed.Stores(), text)
	}
}

func TestAppendAllocatesNothing(t *testing.T) {
	parsed, err := form.Parse("{key}/{run}/{n}/{field.title}/{field.id}/{value}")
	require.NoError(t, err)
	req, dst := request(t), make([]byte, 0, 1<<12)
	require.Zero(t, testing.AllocsPerRun(1000, func() { dst = parsed.Append(dst[:0], req, "run") }))
}

// The text of random parts is parsed into the same parts, and no two text parts are adjacent.
func TestParseUndoesString(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	for range 20_000 {
		var parts form.Template
		var text strings.Builder
		for range rnd.IntN(8) {
			p := form.Part{Kind: form.Kind(rnd.IntN(int(form.Field) + 1))}
			if p.Kind == form.Text || p.Kind == form.Field {
				p.Text = []string{"a", "{", "}", "}{", "{key}", "é", " x "}[rnd.IntN(7)]
			}
			if p.Kind == form.Field {
				p.Text = strings.Trim(p.Text, "{}") + "f"
			}
			text.WriteString(p.String())
			if last := len(parts) - 1; p.Kind == form.Text && last >= 0 && parts[last].Kind == form.Text {
				parts[last].Text += p.Text
			} else {
				parts = append(parts, p)
			}
		}
		got, err := form.Parse(text.String())
		require.NoError(t, err, text.String())
		require.Equal(t, parts, got, text.String())
	}
}

func FuzzParse(f *testing.F) {
	for _, text := range []string{"{key}", "{{}}", "{field.a}", "x{run}{n}}}", "{value", "}", "{{{key}}}"} {
		f.Add(text)
	}
	req := request(f)
	f.Fuzz(func(t *testing.T, text string) {
		parsed, err := form.Parse(text)
		if err != nil {
			require.True(t, utf8.ValidString(err.Error()) || !utf8.ValidString(text))
			return
		}
		require.Equal(t, text, parsed.String())
		made := parsed.Append(nil, req, "{run}")
		if parsed.Count(form.Text) == len(parsed) && !strings.ContainsAny(text, "{}") {
			require.Equal(t, text, string(made))
		}
	})
}
