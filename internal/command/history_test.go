package command_test

import (
	"context"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/loadgen/loadgen/internal/base/exit"
	"github.com/loadgen/loadgen/internal/result/run"
	"github.com/loadgen/loadgen/internal/result/rundir"
	"github.com/loadgen/loadgen/internal/servertest"
)

// push runs loadgen runs push and returns its exit code and all its output, which never contains the password.
func push(t *testing.T, args ...string) (code int, words string) {
	t.Helper()
	p := start(t, command(t, append([]string{"runs", "push"}, args...)...))
	code = p.wait(60 * time.Second)
	words = p.stdout.String() + p.stderr.String()
	require.NotContains(t, words, servertest.PostgresPassword)
	require.NotContains(t, words, "never-to-be")
	return code, words
}

// A team's database holds what result.json does, once, and answers the page's queries.
func TestPushedRunsCanBeQueried(t *testing.T) {
	t.Parallel()
	url := servertest.Postgres(t)
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	l := begin(t, strings.ReplaceAll(briefExperiment, "sessions = 1", "sessions = 20"), "--label", "branch=main") // enough gets for a p99
	x := l.experiment(60 * time.Second)

	code, words := push(t, url, "--runs", l.runs)
	require.Zero(t, code, words)
	require.Contains(t, words, "10 pushed, 0 there already")
	code, words = push(t, url, x.ID, "--runs", l.runs)
	require.Zero(t, code, words)
	require.Contains(t, words, "0 pushed, 10 there already")

	db, err := pgx.Connect(ctx, url)
	require.NoError(t, err)
	defer db.Close(context.Background())
	for _, named := range x.Runs {
		r, err := rundir.Load(l.runs, named.ID)
		require.NoError(t, err)
		requirePushed(t, ctx, db, r)
	}
	var differs int
	require.NoError(t, db.QueryRow(ctx, `SELECT count(*) FROM loadgen.comparisons WHERE experiment = $1 AND differs`, x.ID).Scan(&differs))
	want := 0
	for _, f := range x.Figures {
		if f.Differs {
			want++
		}
	}
	require.Equal(t, want, differs)
	requirePageAnswers(t, ctx, db)
	requireDashboardsAnswer(t, ctx, db, "brief")

	// A deleted run can be pushed again, alone; a different one of its name cannot.
	_, err = db.Exec(ctx, `DELETE FROM loadgen.runs WHERE id = $1`, x.Runs[4].ID)
	require.NoError(t, err)
	_, err = db.Exec(ctx, `UPDATE loadgen.runs SET started_at = '2001-01-01Z' WHERE id = $1`, x.Runs[0].ID)
	require.NoError(t, err)
	code, words = push(t, url, x.Runs[4].ID, "--runs", l.runs)
	require.Zero(t, code, words)
	require.Contains(t, words, "1 pushed, 0 there already")
	code, words = push(t, url, x.Runs[0].ID, "--runs", l.runs)
	require.Equal(t, exit.Failed, code)
	require.Contains(t, words, "the database has another one of this name, which began at 2001-01-01T00:00:00Z")
}

// requireDashboardsAnswer runs the statements of all dashboards for a plan, with what Grafana puts for its macros: each returns rows, and those of lines
// a time, a name and a number.
func requireDashboardsAnswer(t *testing.T, ctx context.Context, db *pgx.Conn, plan string) {
	t.Helper()
	filter := regexp.MustCompile(`\$__timeFilter\(([^)]*)\)`)
	asked := 0
	for name, b := range dashboards(t) {
		for _, statement := range b.statements() {
			sql := strings.ReplaceAll(filter.ReplaceAllString(statement, "$1 BETWEEN now() - interval '90 days' AND now()"), "${plan:sqlstring}", "'"+plan+"'")
			require.NotContains(t, sql, "$", name)
			rows, err := db.Query(ctx, sql)
			require.NoError(t, err, sql)
			n := 0
			for ; rows.Next(); n++ {
				values, err := rows.Values()
				require.NoError(t, err)
				if rows.FieldDescriptions()[0].Name == "time" {
					require.IsType(t, time.Time{}, values[0], sql)
					require.IsType(t, "", values[1], sql)
					require.Len(t, values, 3, sql)
				}
			}
			require.NoError(t, rows.Err(), sql)
			require.Positive(t, n, sql)
			asked++
		}
	}
	require.Equal(t, 8, asked)
}

// requirePushed compares a run's rows with its result.
func requirePushed(t *testing.T, ctx context.Context, db *pgx.Conn, r *run.Run) {
	t.Helper()
	var branch, digest string
	var phases, seconds, drawsAs int
	require.NoError(t, db.QueryRow(ctx, `SELECT labels->>'branch', plan_digest, draws_as FROM loadgen.runs WHERE id = $1`, r.ID).Scan(&branch, &digest, &drawsAs))
	require.Equal(t, []string{"main", r.PlanDigest}, []string{branch, digest})
	require.Equal(t, r.Repetition, drawsAs)
	require.NoError(t, db.QueryRow(ctx, `SELECT count(*) FROM loadgen.phases WHERE run = $1`, r.ID).Scan(&phases))
	require.Len(t, r.PhaseOrder, phases)
	for name, p := range r.Phase {
		var ok uint64
		require.NoError(t, db.QueryRow(ctx, `SELECT count(*), coalesce(sum(ok), 0)::bigint FROM loadgen.series WHERE run = $1 AND phase = $2`, r.ID, name).Scan(&seconds, &ok))
		require.Len(t, p.Series, seconds)
		total := uint64(0)
		for _, row := range p.Series {
			total += row.OK
		}
		require.Equal(t, total, ok)
		for verb, o := range p.Op {
			var due, okay uint64
			var rate, p50, mean float64
			require.NoError(t, db.QueryRow(ctx, `
				SELECT o.due, o.ok,
					(SELECT value FROM loadgen.figures f WHERE (f.run, f.phase, f.op, f.figure) = (o.run, o.phase, o.op, 'rate')),
					(SELECT value FROM loadgen.figures f WHERE (f.run, f.phase, f.op, f.figure) = (o.run, o.phase, o.op, 'response.p50')),
					(SELECT value FROM loadgen.figures f WHERE (f.run, f.phase, f.op, f.figure) = (o.run, o.phase, o.op, 'service.mean'))
				FROM loadgen.ops o WHERE run = $1 AND phase = $2 AND op = $3`, r.ID, name, verb).Scan(&due, &okay, &rate, &p50, &mean))
			require.Equal(t, []uint64{o.Due, o.OK}, []uint64{due, okay})
			require.Equal(t, []float64{*o.Rate, *o.Response.P50, *o.Service.Mean}, []float64{rate, p50, mean})
		}
	}
}

// requirePageAnswers runs the queries of docs/history.md, and checks that its table names the existing columns.
func requirePageAnswers(t *testing.T, ctx context.Context, db *pgx.Conn) {
	t.Helper()
	page, err := os.ReadFile(filepath.Join("..", "..", "docs", "history.md"))
	require.NoError(t, err)
	queries := regexp.MustCompile("(?s)```sql\n(.*?)```").FindAllStringSubmatch(string(page), -1)
	require.GreaterOrEqual(t, len(queries), 5)
	for _, q := range queries {
		rows, err := db.Query(ctx, q[1])
		require.NoError(t, err)
		n := 0
		for rows.Next() {
			n++
		}
		require.NoError(t, rows.Err(), q[1])
		require.Positive(t, n, q[1])
	}
	said := map[string]string{}
	for _, m := range regexp.MustCompile("(?m)^\\| `(\\w+)` \\|[^|]*\\| (.*) \\|$").FindAllStringSubmatch(string(page), -1) {
		said[m[1]] = strings.ReplaceAll(m[2], "`", "")
	}
	rows, err := db.Query(ctx, `
		SELECT table_name, string_agg(column_name, ', ' ORDER BY ordinal_position)
		FROM information_schema.columns WHERE table_schema = 'loadgen' GROUP BY 1`)
	require.NoError(t, err)
	there := map[string]string{}
	for rows.Next() {
		var name, columns string
		require.NoError(t, rows.Scan(&name, &columns))
		there[name] = columns
	}
	require.NoError(t, rows.Err())
	require.Equal(t, there, said)
}

// A failed push says why, in time, and without the password.
func TestPushRefuses(t *testing.T) {
	t.Parallel()
	url := servertest.Postgres(t)
	runs := t.TempDir()
	silent, err := net.Listen("tcp", "127.0.0.1:0") // the kernel connects, and nobody answers
	require.NoError(t, err)
	defer silent.Close()
	for name, test := range map[string]struct {
		args []string
		code int
		want string
	}{
		"no database":    {nil, 2, "no database is named: write loadgen runs push URL"},
		"no URL":         {[]string{"never-to-be@example.org"}, exit.Failed, "no URL of PostgreSQL: write postgres://"},
		"bad port":       {[]string{"postgres://u:never-to-be@127.0.0.1:x/db"}, exit.Failed, "no URL of PostgreSQL"},
		"bad setting":    {[]string{"postgres://u:never-to-be@127.0.0.1/db?sslmode=some"}, exit.Failed, "look at its sslmode"},
		"wrong password": {[]string{strings.Replace(url, "never-to-be", "never-to-be-wrong", 1)}, exit.Failed, "password authentication failed"},
		"no server":      {[]string{"postgres://u:never-to-be@127.0.0.1:1/db?sslmode=disable"}, exit.Failed, "connection refused"},
		"silence":        {[]string{"postgres://u:never-to-be@" + silent.Addr().String() + "/db?sslmode=disable", "--timeout", "300ms"}, exit.Failed, "timeout"},
		"no TLS there":   {[]string{strings.Replace(url, "disable", "require", 1)}, exit.Failed, "TLS"},
		"no such run":    {[]string{url, "none"}, 2, "no run none in "},
		"no time":        {[]string{url, "--timeout", "0s"}, 2, "write a positive duration"},
	} {
		t.Run(name, func(t *testing.T) {
			code, words := push(t, append(test.args, "--runs", runs)...)
			require.Contains(t, words, test.want)
			require.Equal(t, test.code, code, words)
		})
	}
	code, words := push(t, url, "--runs", runs)
	require.Zero(t, code, words)
	require.Contains(t, words, "0 pushed, 0 there already")
}
