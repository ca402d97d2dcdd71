package run

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

var update = flag.Bool("update", false, "rewrite golden files")

// placeholder names the keys of the map at a path.
func placeholder(path string) string {
	return map[string]string{
		"phase":                               "NAME",
		"phase.NAME.op":                       "VERB",
		"variants[].values":                   "VARIABLE",
		"figures[].nulls":                     "PATH",
		"phase.NAME.setup.op":                 "VERB",
		"phase.NAME.levels[].op":              "VERB",
		"environment.servers":                 "TARGET",
		"environment.servers.TARGET":          "ENDPOINT",
		"environment.servers.TARGET.ENDPOINT": "FACT",
		"phase.NAME.nulls":                    "PATH",
		"environment.nulls":                   "PATH",
	}[path]
}

// schema lists the paths of a type's JSON with their types. A struct that was listed before is named by its first path.
type schema struct {
	paths, types []string
	seen         map[reflect.Type]string
}

func (s *schema) add(path, kind string) {
	s.paths, s.types = append(s.paths, path), append(s.types, kind)
}

func (s *schema) walk(path string, t reflect.Type, null string) {
	switch t.Kind() {
	case reflect.Pointer:
		s.walk(path, t.Elem(), " or null")
	case reflect.Slice:
		s.walk(path+"[]", t.Elem(), "")
	case reflect.Map:
		elem := t.Elem()
		if elem.Kind() == reflect.Pointer {
			elem = elem.Elem() // a key of a map is there with its value
		}
		s.walk(path+"."+placeholder(path), elem, "")
	case reflect.Struct:
		if t == reflect.TypeFor[time.Time]() {
			s.add(path, "string")
			return
		}
		if first, ok := s.seen[t]; ok {
			s.add(path, "as "+first+null)
			return
		}
		s.seen[t] = path
		if path != "" {
			s.add(path, "object"+null)
		}
		s.fields(path, t)
	default:
		s.add(path, map[reflect.Kind]string{
			reflect.String: "string", reflect.Bool: "boolean", reflect.Float64: "number",
			reflect.Int: "integer", reflect.Int64: "integer", reflect.Uint32: "integer", reflect.Uint64: "integer",
		}[t.Kind()]+null)
	}
}

func (s *schema) fields(path string, t reflect.Type) {
	for f := range t.Fields() {
		switch name := f.Tag.Get("json"); {
		case f.Anonymous:
			s.fields(path, f.Type)
		case f.IsExported() && name != "-":
			s.walk(strings.TrimPrefix(path+"."+name, "."), f.Type, "")
		}
	}
}

func schemaOf(t reflect.Type) *schema {
	s := &schema{seen: map[reflect.Type]string{}}
	s.walk("", t, "")
	return s
}

func TestSchemaGolden(t *testing.T) {
	for golden, of := range map[string]reflect.Type{
		"testdata/schema.golden": reflect.TypeFor[Run](), "testdata/experiment.golden": reflect.TypeFor[Experiment](),
	} {
		s := schemaOf(of)
		var b strings.Builder
		for i, path := range s.paths {
			fmt.Fprintf(&b, "%-45s %s\n", path, s.types[i])
		}
		if *update {
			require.NoError(t, os.WriteFile(golden, []byte(b.String()), 0o644))
		}
		want, err := os.ReadFile(golden)
		require.NoError(t, err)
		require.Equal(t, string(want), b.String(), "a change of the schema: rewrite with -update, and describe it in docs/result.md")
	}
}

// docs/result.md has a row for each path of the schema, in backquotes at its start, and for no other: a run's, then an experiment's.
func TestSchemaDocumented(t *testing.T) {
	page, err := os.ReadFile("../../docs/result.md")
	require.NoError(t, err)
	first, second, found := strings.Cut(string(page), "\n## An experiment\n")
	require.True(t, found)
	for part, of := range map[string]reflect.Type{first: reflect.TypeFor[Run](), second: reflect.TypeFor[Experiment]()} {
		var rows []string
		for _, m := range regexp.MustCompile("(?m)^\\| `([^`]+)` \\|").FindAllStringSubmatch(part, -1) {
			rows = append(rows, m[1])
		}
		paths := schemaOf(of).paths
		slices.Sort(paths)
		slices.Sort(rows)
		require.Equal(t, paths, rows)
	}
}

// nullPaths returns the steps to every null in r's JSON.
func nullPaths(t *testing.T, r *Run) (paths [][]string) {
	t.Helper()
	b, err := json.Marshal(r)
	require.NoError(t, err)
	var v any
	require.NoError(t, json.Unmarshal(b, &v))
	var walk func(v any, path []string)
	walk = func(v any, path []string) {
		switch v := v.(type) {
		case nil:
			paths = append(paths, slices.Clone(path))
		case map[string]any:
			for k, inner := range v {
				walk(inner, append(path, k))
			}
		case []any:
			for i, inner := range v {
				walk(inner, append(path, strconv.Itoa(i)))
			}
		}
	}
	walk(v, nil)
	return paths
}

func TestJSONRoundTrip(t *testing.T) {
	r := New(Header{ID: "x", StartedAt: time.Date(2026, 11, 20, 17, 34, 38, 0, time.UTC)}, nowhere())
	r.Add("get", newPhase(closedPhase(), openLoad(1000, 0)))
	b, err := json.Marshal(r)
	require.NoError(t, err)
	var back Run
	require.NoError(t, json.Unmarshal(b, &back))
	again, err := json.Marshal(&back)
	require.NoError(t, err)
	require.JSONEq(t, string(b), string(again))
	require.NoError(t, back.CheckValid())
}
