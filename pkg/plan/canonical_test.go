package plan_test

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/loadgen/loadgen/internal/plan/dialect"
	"github.com/loadgen/loadgen/pkg/driver"
	"github.com/loadgen/loadgen/pkg/plan"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// anyPlan draws a valid plan.
func anyPlan(t *rapid.T) *plan.Plan {
	p := &plan.Plan{
		Name:        "p",
		Description: rapid.StringN(0, 50, 200).Draw(t, "description"),
		Seed:        rapid.Uint64().Draw(t, "seed"),
		Asserts:     []*plan.Assert{},
	}
	replicated := rapid.Bool().Draw(t, "replicated")
	p.Targets = []*plan.Target{anyTarget(t, replicated)}
	session := rapid.Bool().Draw(t, "session")
	d := &plan.Dataset{
		Name: "d",
		Keys: plan.Keys{
			Pick: "uniform", Count: rapid.Int64Range(1, 1e8).Draw(t, "count"), Scope: "shared",
			Format: rapid.SampledFrom([]string{"key:%012d", "%d", "<%x>&%%", "k%064d"}).Draw(t, "format"),
		},
		Values: plan.Values{Size: rapid.IntRange(24, 512<<20).Draw(t, "size"), Checked: replicated || rapid.Bool().Draw(t, "checked")},
	}
	if session {
		d.Keys.Scope = "session"
	}
	switch rapid.SampledFrom([]string{"uniform", "zipf", "ycsb", "hotspot"}).Draw(t, "pick") {
	case "zipf":
		d.Keys.Pick, d.Keys.Skew = "zipf", rapid.Float64Range(1e-9, 10).Draw(t, "skew")
	case "ycsb":
		d.Keys.Pick, d.Keys.Skew, d.Keys.Form = "zipf", 0.99, "ycsb"
	case "hotspot":
		d.Keys.Count += 2
		d.Keys.Pick, d.Keys.HotOps, d.Keys.HotKeys = "hotspot", rapid.Float64Range(1e-9, 1).Draw(t, "ops"), 0.5
	}
	p.Datasets = []*plan.Dataset{d}
	for i := range rapid.IntRange(1, 5).Draw(t, "phases") {
		p.Phases = append(p.Phases, anyPhase(t, fmt.Sprintf("phase-%d", i), session))
	}
	p.Observes = []*plan.Observe{}
	for i := range rapid.IntRange(0, 3).Draw(t, "observations") {
		p.Observes = append(p.Observes, anyObserve(t, fmt.Sprintf("o-%d", i)))
	}
	for i := range rapid.IntRange(0, 2).Draw(t, "asserts") {
		p.Asserts = append(p.Asserts, &plan.Assert{
			Name: fmt.Sprintf("free text <%d> %s", i, rapid.StringMatching(`[ -~]{0,20}`).Draw(t, "name")),
			That: `a.b["c"] < 1 && "é" != f(2)`, File: "plan.hcl", Line: i,
		})
	}
	return p
}

func anyObserve(t *rapid.T, name string) *plan.Observe {
	o := &plan.Observe{
		Name: name, Every: time.Duration(rapid.Int64Range(int64(time.Second), int64(time.Hour)).Draw(t, "every")),
		Timeout: time.Duration(rapid.Int64Range(1, int64(time.Minute)).Draw(t, "timeout")),
	}
	switch o.Kind = rapid.SampledFrom([]string{"process", "directory", "prometheus", "hook"}).Draw(t, "kind"); o.Kind {
	case plan.ObserveProcess:
		o.Port, o.Fields = rapid.IntRange(1, 65535).Draw(t, "port"), usual(plan.ObserveProcess)
	case plan.ObserveDirectory:
		o.Path, o.Fields, o.Every = rapid.StringMatching("/[a-z <>&]{1,9}").Draw(t, "path"), usual(plan.ObserveDirectory), 0
	case plan.ObservePrometheus:
		o.URL = "https://host:1/metrics?a=b&c"
		o.Fields = []plan.Field{{Name: "gc", Unit: "s", Counter: true, Series: `gc_seconds_sum{zone="a<b", code="\\"}`}}
	case plan.ObserveHook:
		o.Hook = "jmap"
		o.Fields = []plan.Field{{Name: "live_bytes", Unit: "bytes"}, {Name: rapid.StringMatching("[a-z_][a-z0-9_]{0,9}").Draw(t, "field")}}
	}
	return o
}

func anyTarget(t *rapid.T, replicated bool) *plan.Target {
	target := &plan.Target{
		Name: "t", Driver: "redis", Timeout: time.Duration(rapid.Int64Range(1, 1e15).Draw(t, "timeout")),
		Executor:  rapid.SampledFrom([]string{plan.EventLoop, plan.Blocking}).Draw(t, "executor"),
		Placement: rapid.SampledFrom([]string{"ketama", plan.Rendezvous}).Draw(t, "placement"),
	}
	n := rapid.IntRange(1, 5).Draw(t, "nodes")
	if rapid.Bool().Draw(t, "builtin") {
		target.Endpoints, target.Builtin = []string{}, &plan.Builtin{Nodes: n, Memory: rapid.Int64Range(1<<20, 1<<50).Draw(t, "memory")}
	} else {
		for i := range n {
			target.Endpoints = append(target.Endpoints, fmt.Sprintf("host:%d", 7000+i))
		}
		if target.Executor == plan.Blocking && rapid.Bool().Draw(t, "tls") {
			target.TLS = &plan.TLS{CA: rapid.StringMatching("[a-z/]{0,9}").Draw(t, "ca"), Cert: "c", Key: "k", ServerName: "cache.example.org"}
		}
	}
	config := &fakeConfig{Database: rapid.IntRange(0, 99).Draw(t, "database"), Prefix: rapid.StringMatching("[a-z]{4}").Draw(t, "prefix")}
	if rapid.Bool().Draw(t, "secret") {
		config.Password = &driver.Secret{Name: "NAME_1"}
	}
	target.Config = config
	if replicated {
		replicas := rapid.IntRange(1, n).Draw(t, "n")
		target.Replication = &plan.Replication{
			Coordinate: "client", N: replicas, W: rapid.IntRange(1, replicas).Draw(t, "w"), R: rapid.IntRange(1, replicas).Draw(t, "r"),
			Timeout: time.Second, ReadFanout: rapid.SampledFrom([]string{"n", "r"}).Draw(t, "fanout"),
			ReadFrom: rapid.SampledFrom([]string{"first", "random"}).Draw(t, "from"),
		}
	}
	return target
}

func anyPhase(t *rapid.T, name string, session bool) *plan.Phase {
	ph := &plan.Phase{
		Name: name, Target: "t", Dataset: "d", Scenarios: []plan.Scenario{}, Setup: []plan.Weight{}, MaxBad: rapid.Float64Range(0, 1).Draw(t, "max bad"),
		Batch: 1, Ops: []plan.Weight{{Op: "get", Weight: rapid.Float64Range(1e-9, 1e9).Draw(t, "get")}, {Op: "delete", Weight: 1}},
	}
	stop := rapid.SampledFrom([]*plan.Stop{nil, {Errors: 1}, {Errors: 100}, {Share: 0.05}}).Draw(t, "stop")
	sessions, pipeline := rapid.IntRange(1, 1000).Draw(t, "sessions"), rapid.IntRange(1, 4096).Draw(t, "pipeline")
	schedule := plan.Schedule{
		Arrivals: "poisson", Clients: plan.Clients{Sessions: sessions, Pipeline: pipeline}, InFlight: rapid.IntRange(1, sessions*pipeline).Draw(t, "in flight"),
		OnFull: "shed", Streams: (1023 + sessions) / sessions * sessions,
	}
	switch model := rapid.IntRange(0, 5).Draw(t, "model"); {
	case model == 0 && !session:
		ph.Populate = &plan.Clients{Sessions: sessions, Pipeline: pipeline}
		ph.Ops = []plan.Weight{{Op: "put", Weight: 1}}
		return ph
	case model == 1:
		ph.Clear = &plan.Clients{Sessions: sessions, Pipeline: pipeline}
		ph.Ops = []plan.Weight{{Op: "delete", Weight: 1}}
		return ph
	case model == 2:
		ph.Closed = &plan.Closed{Clients: plan.Clients{Sessions: sessions, Pipeline: pipeline}, Think: time.Duration(rapid.Int64Range(0, 1e15).Draw(t, "think"))}
		ph.Closed.Iterations = rapid.Int64Range(1, 1e12).Draw(t, "iterations")
	case model == 3:
		ph.Stages = &plan.Stages{Schedule: schedule}
		for range rapid.IntRange(1, 5).Draw(t, "stages") {
			ph.Stages.Stages = append(ph.Stages.Stages, plan.Stage{
				Rate: rapid.Float64Range(1e-9, 1e9).Draw(t, "rate"), Duration: time.Minute,
				Ramp: time.Duration(rapid.Int64Range(0, int64(time.Minute)).Draw(t, "ramp")),
			})
		}
	case model == 4:
		ph.Search = &plan.Search{
			Schedule: schedule, From: rapid.Float64Range(1e4, 1e6).Draw(t, "from"), To: 1e9, StepDuration: time.Second,
			Precision: rapid.Float64Range(0.001, 1).Draw(t, "precision"), Budget: time.Minute,
			SLOs: []plan.SLO{{Op: "delete", ResponseP50: 1}, {ResponseP90: time.Second}},
		}
		ph.Ops[0].Weight = 1
	default:
		ph.Open = &plan.Open{Schedule: schedule, Rate: rapid.Float64Range(1e-9, 1e9).Draw(t, "rate"), Duration: time.Minute}
	}
	if session && rapid.Bool().Draw(t, "setup") {
		ph.Setup = []plan.Weight{{Op: "put", Weight: 1}}
		hits := rapid.Float64Range(0, 1).Draw(t, "hits")
		ph.ExpectHits = &hits
	}
	if ph.Search == nil {
		ph.Stop = stop
	}
	if ph.Search == nil && rapid.Bool().Draw(t, "scenario") {
		w := ph.Ops[0].Weight
		ph.Scenarios = []plan.Scenario{{Name: "s", Weight: w, Steps: []plan.ScenarioStep{
			{Op: "delete", Key: "new"}, {Op: "get", Key: "same", Think: time.Duration(rapid.Int64Range(0, 1e15).Draw(t, "pause"))},
		}}}
		ph.Ops = []plan.Weight{{Op: "get", Weight: w}, {Op: "delete", Weight: w}}
	}
	return ph
}

// A plan survives a round trip through its canonical form, whose bytes are a function of the plan.
func TestCanonicalRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := anyPlan(t)
		b, err := p.Canonical()
		require.NoError(t, err)
		again, err := plan.Decode(b, drivers())
		require.NoError(t, err)
		if p.Targets[0].Endpoints == nil {
			p.Targets[0].Endpoints = []string{}
		}
		require.Equal(t, p, again)
		same, err := again.Canonical()
		require.NoError(t, err)
		require.Equal(t, string(b), string(same))
		sum := sha256.Sum256(b)
		require.Equal(t, hex.EncodeToString(sum[:]), plan.Digest(b))
		requireSane(t, p)
	})
}

// requireSane checks that nothing in a plan's prediction overflowed.
func requireSane(t require.TestingT, p *plan.Plan) {
	phases, all := p.Predict()
	for _, ph := range append(phases, all) {
		for _, n := range []*int64{ph.Ops, ph.Requests, &ph.SetupOps, &ph.SetupRequests, &ph.Connections, &ph.Memory, (*int64)(ph.Duration)} {
			require.True(t, n == nil || *n >= 0, ph.Name)
		}
	}
}

func TestDecodeRefuses(t *testing.T) {
	src := strings.Replace(small(`assert "a" { that = 1 < 2 }`), `target "t" { driver = "null" }`,
		"target \"t\" {\n driver = \"redis\"\n endpoints = [\"a:1\", \"a:2\"]\n password = secret(\"PW\")\n replication {\n n = 2\n w = 1\n r = 1\n }\n}", 1)
	b, err := good(t, strings.Replace(src, "size = 10", "size = 24", 1), plan.Vars{}).Canonical()
	require.NoError(t, err)
	right := string(b)
	cases := []struct{ name, old, new, says string }{
		{"unknown field", `"seed":1`, `"seed":1,"sead":2`, `unknown field "sead"`},
		{"unknown field of a driver", `"database":0`, `"database":0,"databse":2`, `unknown field "databse"`},
		{"missing field", `"seed":1,`, ``, "not canonical"},
		{"repeated field", `"seed":1`, `"seed":1,"seed":1`, "not canonical"},
		{"field in other case", `"seed":1`, `"Seed":1`, "not canonical"},
		{"order", `"pick":"uniform","scope":"shared"`, `"scope":"shared","pick":"uniform"`, "not canonical"},
		{"white space", `"seed":1`, `"seed": 1`, "not canonical"},
		{"number form", `"seed":1`, `"seed":1e0`, "cannot unmarshal"},
		{"null list", `"setup":[]`, `"setup":null`, "not canonical"},
		{"null target", `"targets":[{`, `"targets":[null,{`, "a target is null"},
		{"null phase", `"phases":[{`, `"phases":[null,{`, "a phase is null"},
		{"null dataset", `"datasets":[{`, `"datasets":[null,{`, "a dataset is null"},
		{"null assert", `"asserts":[{`, `"asserts":[null,{`, "an assert is null"},
		{"null config", `"config":{`, `"config":null,"x":{`, "unknown field"},
		{"unknown driver", `"driver":"redis"`, `"driver":"redsi"`, `unknown driver "redsi"`},
		{"type", `"count":10`, `"count":"10"`, "cannot unmarshal"},
		{"count", `"count":10`, `"count":0`, "count = 0"},
		{"overflow", `"count":10`, `"count":99999999999999999999`, "cannot unmarshal"},
		{"w above n", `"w":1`, `"w":3`, "w = 3 with n = 2"},
		{"n above endpoints", `"n":2`, `"n":3`, "n = 3 on 2 endpoints"},
		{"unchecked replicas", `"checked":true`, `"checked":false`, "not checked"},
		{"two models", `"clear":null`, `"clear":{"pipeline":1,"sessions":1}`, "2 load models"},
		{"secret's name", `"secret":"PW"`, `"secret":"pw"`, "without a proper name"},
		{"driver's own check", `"database":0`, `"database":-1`, "database is negative"},
		{"no condition", `"that":"1 \u003c 2"`, `"that":"1 \u003c"`, "not canonical"},
		{"condition", `1 < 2`, `1 <`, "assert \"a\": "},
		{"nested condition", `1 < 2`, strings.Repeat("(", 200), "nested more than 100 deep"},
		{"line", `"line":22`, `"line":-1`, "no place"},
		{"unused target", `"target":"t"`, `"target":"u"`, "neither a phase nor an observation uses it"},
		{"path as a name", `"name":"x"`, `"name":"../x"`, "a phase named"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			if c.name == "no condition" {
				require.NotContains(t, right, c.old, "angle brackets stand as they are")
				return
			}
			require.Contains(t, right, c.old)
			_, err := plan.Decode([]byte(strings.Replace(right, c.old, c.new, 1)), drivers())
			require.ErrorContains(t, err, c.says)
		})
	}
	for _, tail := range []string{" ", "\n", "{}", "x"} {
		_, err := plan.Decode([]byte(right+tail), drivers())
		require.Error(t, err, "trailing %q", tail)
	}
	_, err = plan.Decode(b, drivers()[1:])
	require.ErrorContains(t, err, `unknown driver "redis"`)
}

func TestDecodeOfHostileDataIsBounded(t *testing.T) {
	lists := func(kind, element string, n int) string {
		return `{"` + kind + `":[` + strings.TrimSuffix(strings.Repeat(element+",", n), ",") + `]}`
	}
	cases := map[string]string{
		"targets":    lists("targets", "{}", 40_000),
		"phases":     lists("phases", "{}", 40_000),
		"ops":        `{"phases":[` + lists("ops", "{}", 40_000) + `]}`,
		"endpoints":  `{"targets":[` + lists("endpoints", `""`, 90_000) + `]}`,
		"deep":       strings.Repeat("[", 1<<20),
		"deep map":   `{"targets":[{"config":` + strings.Repeat(`{"a":`, 1<<18),
		"long":       strings.Repeat(" ", 8<<20),
		"text":       `{"name":"` + strings.Repeat("x", 3<<20) + `"}`,
		"numbers":    `{"targets":[{"driver":"redis","config":[` + strings.TrimSuffix(strings.Repeat("1,", 90_000), ",") + `]}]}`,
		"exponents":  `{"datasets":[{"keys":{"skew":1e999999999}}]}`,
		"many names": manyNames(20_000),
	}
	for name, text := range cases {
		t.Run(name, func(t *testing.T) {
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			_, err := plan.Decode([]byte(text), drivers())
			runtime.ReadMemStats(&after)
			require.Error(t, err)
			require.LessOrEqual(t, len(err.Error()), 64<<10)
			t.Logf("%.1f MiB", float64(after.TotalAlloc-before.TotalAlloc)/(1<<20))
			require.LessOrEqual(t, after.TotalAlloc-before.TotalAlloc, uint64(64<<20))
		})
	}
}

func manyNames(n int) string {
	var b strings.Builder
	b.WriteString(`{"phases":[`)
	for i := range n {
		fmt.Fprintf(&b, `{"name":"p%d","target":"t%d"},`, i, i)
	}
	return strings.TrimSuffix(b.String(), ",") + "]}"
}

func FuzzDecode(f *testing.F) {
	files, err := filepath.Glob("testdata/good/*.json")
	require.NoError(f, err)
	for _, file := range files {
		b, err := os.ReadFile(file)
		require.NoError(f, err)
		text, _, _ := strings.Cut(string(b), "}\n")
		f.Add([]byte(strings.ReplaceAll(text+"}", "},\n{", "},{")))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		p, err := plan.Decode(b, drivers())
		if err != nil {
			return
		}
		same, err := p.Canonical()
		require.NoError(t, err)
		require.Equal(t, string(b), string(same))
		requireSane(t, p)
	})
}

func FuzzParse(f *testing.F) {
	for _, pattern := range []string{"testdata/bad/*.hcl", "../../plans/*.hcl"} {
		files, err := filepath.Glob(pattern)
		require.NoError(f, err)
		for _, file := range files {
			b, err := os.ReadFile(file)
			require.NoError(f, err)
			f.Add(string(b), "w=1")
		}
	}
	for _, h := range hostileValues {
		f.Add(inPhase(h.text), "x")
	}
	f.Fuzz(func(t *testing.T, src, flag string) {
		if len(src) > 8<<10 {
			return // the bounds on longer ones have tests of their own
		}
		p, diags := resolve(src, "plan.hcl", plan.Vars{Flags: []string{flag}, Environ: []string{"LOADGEN_VAR_" + flag}, Files: []dialect.VarFile{{Text: []byte(flag)}}})
		require.NoError(t, plan.FormatDiagnostics(&strings.Builder{}, diags, map[string][]byte{"plan.hcl": []byte(src)}))
		if p == nil {
			require.True(t, diags.HasErrors())
			return
		}
		require.False(t, diags.HasErrors())
		b, err := p.Canonical()
		require.NoError(t, err)
		again, err := plan.Decode(b, drivers())
		require.NoError(t, err, "what Resolve accepts Decode accepts")
		require.Equal(t, p, again)
		requireSane(t, p)
	})
}
