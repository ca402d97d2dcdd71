package run_test

import (
	"flag"
	"fmt"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/loadgen/loadgen/internal/result/experiment/comparison"
	"github.com/loadgen/loadgen/internal/result/metric"
	"github.com/loadgen/loadgen/internal/result/run"
)

var update = flag.Bool("update", false, "rewrite golden files")

// placeholder names the keys of the map at a path.
func placeholder(path string) string {
	return map[string]string{
		"phase":                                        "NAME",
		"phase.NAME.op":                                "VERB",
		"phase.NAME.op.VERB.checks":                    "CHECK",
		"phase.NAME.op.VERB.kind":                      "KIND",
		"phase.NAME.op.VERB.response.quantiles":        "QUANTILE",
		"phase.NAME.series[].response.quantiles":       "QUANTILE",
		"phase.NAME.event":                             "EVENT",
		"phase.NAME.scenario":                          "SCENARIO",
		"phase.NAME.levels[].scenario":                 "SCENARIO",
		"phase.NAME.scenario.SCENARIO.step":            "STEP",
		"variants[].values":                            "VARIABLE",
		"figures[].nulls":                              "PATH",
		"figures[].null_codes":                         "PATH",
		"phase.NAME.observe":                           "OBSERVATION",
		"phase.NAME.observe.OBSERVATION":               "FIELD",
		"phase.NAME.probes":                            "OBSERVATION",
		"phase.NAME.probes.OBSERVATION.series[].value": "FIELD",
		"phase.NAME.setup.op":                          "VERB",
		"phase.NAME.levels[].op":                       "VERB",
		"environment.servers":                          "TARGET",
		"environment.servers.TARGET":                   "ENDPOINT",
		"environment.servers.TARGET.ENDPOINT":          "FACT",
		"phase.NAME.nulls":                             "PATH",
		"phase.NAME.null_codes":                        "PATH",
		"environment.nulls":                            "PATH",
		"environment.null_codes":                       "PATH",
		"labels":                                       "LABEL",
		"drivers":                                      "DRIVER",
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
			elem = elem.Elem() // with a key, a map has its value
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
		switch name, _, _ := strings.Cut(f.Tag.Get("json"), ","); {
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
		"testdata/schema.golden": reflect.TypeFor[run.Run](), "testdata/experiment.golden": reflect.TypeFor[run.Experiment](),
		"testdata/comparison.golden": reflect.TypeFor[comparison.Result](),
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
		require.Equal(t, string(want), b.String(), "a change of the schema: rewrite with -update, and describe it in metric/paths.tsv")
	}
}

// Each path of the schema is listed, and no other is.
func TestSchemaDocumented(t *testing.T) {
	ofRun, ofExperiment, ofComparison := metric.Paths()
	common := schemaOf(reflect.TypeFor[comparison.Result]()).paths
	for _, p := range ofExperiment {
		if slices.Contains(common, p.Path) && !slices.ContainsFunc(ofComparison, func(own metric.Path) bool { return own.Path == p.Path }) {
			ofComparison = append(ofComparison, p)
		}
	}
	for of, listed := range map[reflect.Type][]metric.Path{
		reflect.TypeFor[run.Run](): ofRun, reflect.TypeFor[run.Experiment](): ofExperiment, reflect.TypeFor[comparison.Result](): ofComparison,
	} {
		var paths []string
		for _, p := range listed {
			require.NotEmpty(t, p.Says, p.Path)
			paths = append(paths, p.Path)
		}
		require.ElementsMatch(t, schemaOf(of).paths, paths)
	}
}
