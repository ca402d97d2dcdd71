//go:build five

package five

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/loadgen/loadgen/internal/result/report/tables"
	"github.com/loadgen/loadgen/internal/result/run"
	"github.com/loadgen/loadgen/internal/result/rundir"
	"github.com/loadgen/loadgen/internal/servertest"
)

var (
	out     = flag.String("out", "", "run the five, and write their pages into `DIR`")
	program = flag.String("loadgen", "../../bin/loadgen", "`PATH` of the program")
)

// limit bounds one execution.
const limit = 20 * time.Minute

// TestFive runs the five and writes their page. It is what make five calls.
func TestFive(t *testing.T) {
	dir, err := filepath.Abs(*out)
	require.NoError(t, err)
	require.NoError(t, os.MkdirAll(filepath.Join(dir, "logs"), 0o755))
	page := index{Processors: runtime.NumCPU()}
	began := time.Now()
	for _, s := range studies {
		var begun, ended bool
		passed := t.Run(s.name, func(t *testing.T) {
			begun = true
			p := part{ID: s.name, Title: s.title, Question: s.question, Source: s.source, Weak: s.weak}
			args, workers := partsOf(t, s.name)
			for i := range s.plans {
				e := &s.plans[i]
				p.Parts = append(p.Parts, e.run(t, &page, dir, false, args, workers))
				if e.fleet {
					p.Parts = append(p.Parts, e.run(t, &page, dir, true, args, workers))
				}
			}
			page.Studies = append(page.Studies, p)
			ended = true
		})
		switch {
		case !begun || ended:
		case passed:
			page.Missing = append(page.Missing, missing{s.title, "Left out: this machine lacks a server for it; make test-servers says which."})
		default:
			page.Missing = append(page.Missing, missing{s.title, "It failed: the output of make five says why."})
		}
	}
	page.Took = time.Since(began).Round(time.Second)
	var b bytes.Buffer
	require.NoError(t, page.write(&b))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "index.html"), b.Bytes(), 0o644))
	t.Logf("%v; %s", page.Took, filepath.Join(dir, "index.html"))
}

// partsOf starts the servers of a study, and returns the arguments that name them, and those that a worker needs.
func partsOf(t *testing.T, name string) (args, workers []string) {
	switch name {
	case "mashona":
		args = []string{"-var", "twice=false"}
	case "aldica", "nuxeo", "valkyrie":
		database := servertest.Postgres(t, "max_connections=200") // nuxeo.hcl has 128 sessions
		u, err := url.Parse(database)
		require.NoError(t, err)
		conn, err := pgx.Connect(t.Context(), database)
		require.NoError(t, err)
		_, err = conn.Exec(t.Context(), "CREATE EXTENSION pg_stat_statements")
		require.NoError(t, errors.Join(err, conn.Close(t.Context())))
		t.Setenv("LOADGEN_SECRET_PG", servertest.PostgresPassword)
		args, workers = []string{"-var", "endpoints=" + u.Host}, []string{"--secret", "PG=" + u.Host}
		switch name {
		case "aldica":
			args = append(args, "-var", "redis="+servertest.Redis(t))
			if servertest.IgniteInstalled() == nil {
				args = append(args, "-var", "ignite="+servertest.StartIgniteNode(t))
			}
		case "valkyrie":
			redis := servertest.Redis(t, "--maxmemory", "1gb", "--maxmemory-policy", "allkeys-lru") // as many files as five seconds save
			args = []string{"-var", fmt.Sprintf("postgres=[%q]", u.Host), "-var", fmt.Sprintf("redis=[%q]", redis), "-var", "scale=10"}
		}
	}
	return args, workers
}

// run runs the plan, with three workers if fleet is true, and returns what the page says of it.
func (p *execution) run(t *testing.T, page *index, dir string, fleet bool, args, workers []string) done {
	name, how := p.name, p.how
	if name == "" {
		name = strings.TrimSuffix(p.plan, ".hcl")
	}
	args = append([]string{
		"run", filepath.Join("..", "..", "plans", p.plan), "--runs", filepath.Join(dir, "runs"),
		"--timeout", limit.String(),
	}, args...)
	if fleet {
		name, how = name+"-3", how+", loaded by three workers"
		args = append(args, "--workers", "3")
	} else {
		args = append(args, "--log-root", filepath.Join(dir, "logs"))
	}
	own := filepath.Join(dir, name+".html")
	said, err := os.Create(filepath.Join(dir, name+".txt"))
	require.NoError(t, err)
	defer said.Close()
	cmd := exec.Command(*program, append(args, "--report", own)...)
	began := time.Now()
	require.NoError(t, load(t, cmd, said, fleet, workers), "see %s", said.Name())

	x, err := experimentIn(said.Name(), filepath.Join(dir, "runs"))
	require.NoError(t, err)
	answers, err := p.tell(x, *program, filepath.Join(dir, "runs"))
	require.NoError(t, err)
	text, err := os.ReadFile(own)
	require.NoError(t, err)
	chart, style := chartOf(string(text), p.chart)
	require.NotEmpty(t, chart, "%s has no chart %q", own, p.chart)
	page.Style, page.Loadgen = style, x.Loadgen
	for _, a := range answers {
		t.Log(a.Text)
	}
	return done{
		How: how, Page: filepath.Base(own), LeftOut: tables.Some(x.LeftOut, "variant"), Took: time.Since(began).Round(time.Second), Answers: answers, Chart: chart,
	}
}

// load runs a coordinator, and three workers beside it if fleet is true.
func load(t *testing.T, cmd *exec.Cmd, said *os.File, fleet bool, workers []string) error {
	cmd.Stdout, cmd.Stderr = said, said
	require.NoError(t, cmd.Start())
	t.Cleanup(func() { _ = cmd.Process.Kill() }) // it has ended, but if the test failed
	if fleet {
		for i := range 3 {
			w := exec.Command(*program, append([]string{"worker", "--name", fmt.Sprint("w", i+1)}, workers...)...)
			require.NoError(t, w.Start())
			t.Cleanup(func() { _ = w.Process.Kill(); _ = w.Wait() })
		}
	}
	return cmd.Wait()
}

// resumed is how a command names its experiment.
var resumed = regexp.MustCompile(`--resume (\S+)`)

// experimentIn loads the experiment that a command's output names.
func experimentIn(said, runs string) (*run.Experiment, error) {
	text, err := os.ReadFile(said)
	if err != nil {
		return nil, err
	}
	id := resumed.FindSubmatch(text)
	if id == nil {
		return nil, fmt.Errorf("%s names no experiment", said)
	}
	return rundir.LoadExperiment(runs, string(id[1]))
}
