package command_test

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/stretchr/testify/require"

	"github.com/loadgen/loadgen/internal/base/exit"
	"github.com/loadgen/loadgen/internal/result/run"
	"github.com/loadgen/loadgen/internal/servertest"
)

// postgresPlan has every verb on both columns, and a statement of its own.
const postgresPlan = `
plan "postgres" {}
variable "server" {}
variable "user" { default = "loadgen" }
variable "database" { default = "postgres" }
variable "column" { default = "jsonb" }
variable "sql" { default = "INSERT INTO visits VALUES ($1, 1) ON CONFLICT (page) DO UPDATE SET n = visits.n + 1" }
variable "duration" { default = "1s" }
variable "sessions" { default = 6 }
target "db" {
	driver    = "postgres"
	endpoints = [var.server]
	user      = var.user
	database  = var.database
	password  = secret("PG")
	column    = var.column
	op "visit" {
		request {
			sql        = var.sql
			parameters = ["{key}"]
		}
	}
}
dataset "items" {
	keys { count = 2000 }
	values { record = { title = "lorem(2)" } }
}` + fillDB + `
phase "mix" {
	target  = target.db
	dataset = dataset.items
	ops     = {
		get    = 6
		put    = 1
		delete = 1
		append = 1
		visit  = 1
	}
	closed {
		sessions = var.sessions
		pipeline = 4
		duration = var.duration
		think    = "1ms"
	}
}
phase "open" {
	target  = target.db
	dataset = dataset.items
	ops     = { get = 1 }
	open {
		rate     = "500/s"
		sessions = 6
		duration = "1s"
	}
}
`

// pgServer is a test's server, with the way a plan names it.
type pgServer struct {
	t       *testing.T
	address string
	place   string
}

func newDatabase(t *testing.T) *pgServer {
	d := &pgServer{t: t, address: servertest.Postgres(t)}
	u, err := url.Parse(d.address)
	require.NoError(t, err)
	d.place = u.Host
	d.ask("CREATE EXTENSION pg_stat_statements; CREATE TABLE visits (page text PRIMARY KEY, n int NOT NULL)")
	return d
}

// ask returns the rows of a query, their columns joined by spaces.
func (d *pgServer) ask(sql string) (rows []string) {
	d.t.Helper()
	pg, err := pgconn.Connect(d.t.Context(), d.address)
	require.NoError(d.t, err)
	defer pg.Close(context.Background())
	results, err := pg.Exec(d.t.Context(), sql).ReadAll()
	require.NoError(d.t, err)
	for _, r := range results {
		for _, row := range r.Rows {
			var texts []string
			for _, b := range row {
				texts = append(texts, string(b))
			}
			rows = append(rows, strings.Join(texts, " "))
		}
	}
	return rows
}

// requireCalls compares the statements that the server counted with the requests that were sent.
func (d *pgServer) requireCalls(r *run.Run) {
	d.t.Helper()
	sent := sums(r)[d.place]
	require.NotEmpty(d.t, sent)
	for verb, begins := range map[string]string{"get": "/* loadgen get */", "put": "/* loadgen put */", "delete": "/* loadgen delete */", "append": "/* loadgen append */", "visit": "INSERT INTO visits"} {
		calls := d.ask("SELECT coalesce(sum(calls), 0) FROM pg_stat_statements WHERE starts_with(query, '" + begins + "')")
		require.Equal(d.t, fmt.Sprint(sent[verb].Sent), calls[0], verb)
		require.Zero(d.t, sent[verb].Error+sent[verb].Timeout, verb)
		require.Positive(d.t, sent[verb].Sent, verb)
	}
}

// TestPostgresCountsWhatIsSent, from one worker and from three: to the request.
func TestPostgresCountsWhatIsSent(t *testing.T) {
	t.Parallel()
	d := newDatabase(t)
	alone := begin(t, postgresPlan, "-var", "server="+d.place)
	r := alone.result(60 * time.Second)
	require.Equal(t, run.Complete, r.Verdict.Completeness, r.Verdict.Reasons)
	require.EqualValues(t, 2000, r.Phase["fill"].Op["put"].OK)
	require.NotNil(t, r.Phase["open"].Op["get"].Lag)
	require.NotNil(t, r.Phase["mix"].Op["visit"])
	require.Equal(t, "off", r.Environment.Servers["db"][d.place]["fsync"])
	require.Regexp(t, `^1[0-9]`, r.Environment.Servers["db"][d.place]["version"])
	d.requireCalls(r)
	d.requireNoCanary(alone)

	d.ask("SELECT pg_stat_statements_reset(); DROP TABLE loadgen_values")
	three := invite(t, 3, func(args ...string) *load { return begin(t, postgresPlan, args...) }, "-var", "server="+d.place)
	for range 3 {
		three.join(three.addr, "--secret", "PG="+d.place)
	}
	r = three.result(60 * time.Second)
	require.Equal(t, run.Complete, r.Verdict.Completeness, r.Verdict.Reasons)
	d.requireCalls(r)
	d.requireNoCanary(three.load)
}

// wipingPlan clears twice what it has put.
const wipingPlan = `
plan "wiping" {}
variable "server" {}
variable "executor" {}
target "db" {
	driver    = "postgres"
	endpoints = [var.server]
	executor  = var.executor
	user      = "loadgen"
	database  = "postgres"
	password  = secret("PG")
}
dataset "items" {
	keys { count = 300 }
	values { size = 100 }
}
dataset "none" {
	keys {
		format = "none:%d"
		count  = 3000
	}
	values { size = 1 }
}
phase "fill" {
	target  = target.db
	dataset = dataset.items
	populate { sessions = 6 }
}
phase "wipe" {
	target  = target.db
	dataset = dataset.items
	clear { sessions = 6 }
}
phase "wipe_nothing" {
	target  = target.db
	dataset = dataset.none
	clear { sessions = 6 }
}
phase "refill" {
	target  = target.db
	dataset = dataset.items
	populate { sessions = 6 }
}
phase "rewipe" {
	target  = target.db
	dataset = dataset.items
	clear { sessions = 6 }
}
`

// TestPostgresClearDropsTheTable once all workers are done with it; the next phase creates it again.
func TestPostgresClearDropsTheTable(t *testing.T) {
	t.Parallel()
	d := newDatabase(t)
	const tables = "SELECT count(*) FROM pg_tables WHERE tablename = 'loadgen_values'"
	for _, executor := range []string{"event loop", "blocking"} {
		vars := []string{"-var", "server=" + d.place, "-var", "executor=" + executor}
		r := begin(t, wipingPlan, vars...).result(60 * time.Second)
		require.Equal(t, run.Complete, r.Verdict.Completeness, r.Verdict.Reasons)
		require.EqualValues(t, 3000, r.Phase["wipe_nothing"].Op["delete"].Miss)
		require.EqualValues(t, 300, r.Phase["rewipe"].Op["delete"].OK)
		require.Equal(t, []string{"0"}, d.ask(tables), "%s", executor)

		three := invite(t, 3, func(args ...string) *load { return begin(t, wipingPlan, args...) }, vars...)
		for range 3 {
			three.join(three.addr, "--secret", "PG="+d.place)
		}
		r = three.result(60 * time.Second)
		require.Equal(t, run.Complete, r.Verdict.Completeness, r.Verdict.Reasons)
		require.EqualValues(t, 300, r.Phase["rewipe"].Op["delete"].OK)
		require.Equal(t, []string{"0"}, d.ask(tables), "%s, three workers", executor)
	}
}

// requireNoCanary looks for the password in everything that a run has written or printed.
func (d *pgServer) requireNoCanary(l *load) {
	d.t.Helper()
	require.NotContains(d.t, l.stdout.String()+l.stderr.String(), servertest.PostgresPassword)
	require.NoError(d.t, filepath.WalkDir(l.runs, func(path string, e os.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		text, err := os.ReadFile(path)
		require.NotContains(d.t, string(text), servertest.PostgresPassword, path)
		return err
	}))
}

// TestPostgresEndsConnections in the middle of a load: outstanding requests are lost for that reason, connections are opened again, and the ledgers
// balance.
func TestPostgresEndsConnections(t *testing.T) {
	t.Parallel()
	d := newDatabase(t)
	l := begin(t, postgresPlan, "-var", "server="+d.place, "-var", "duration=20m")
	l.told("mix ")
	// The server looks for those that are at work on a get, which most lose then: some answer first.
	d.ask("DO $$ DECLARE ended int := 0; n int; BEGIN WHILE ended < 12 AND clock_timestamp() < now() + interval '3 min' LOOP PERFORM pg_stat_clear_snapshot(); " +
		"SELECT count(pg_terminate_backend(pid)) INTO n FROM pg_stat_activity WHERE application_name = 'loadgen' AND state = 'active' AND query LIKE '/* loadgen get%'; " +
		"ended := ended + n; END LOOP; END $$")
	l.signal(syscall.SIGINT)
	r := l.result(60 * time.Second)
	require.Equal(t, run.Aborted, r.Verdict.Completeness, r.Verdict.Reasons)
	var failed uint64
	for _, q := range sums(r)[d.place] {
		require.Equal(t, q.Sent, q.Answered+q.Timeout+q.Error)
		failed += q.Error
	}
	require.Positive(t, failed)
	require.Contains(t, fmt.Sprint(r.Phase["mix"].Errors), "postgres: terminating connection due to administrator command (57P01)")
}

// TestPostgresRefuses what cannot be loaded, before any load, and says what to do.
func TestPostgresRefuses(t *testing.T) {
	t.Parallel()
	d := newDatabase(t)
	d.ask("CREATE TABLE loadgen_values (id int)")
	for says, args := range map[string][]string{
		`database "none" does not exist (SQLSTATE 3D000): make the database`:           {"-var", "database=none"},
		`password authentication failed for user "nobody" (SQLSTATE 28P01): look at`:   {"-var", "user=nobody"},
		"table loadgen_values has the columns (id integer), not (key bytea, value jso": nil,
	} {
		l := begin(t, postgresPlan, append([]string{"-var", "server=" + d.place}, args...)...)
		r := l.result(60 * time.Second)
		require.Equal(t, exit.Failed, r.ExitCode)
		require.Contains(t, r.Verdict.Reasons[0], says)
		d.requireNoCanary(l)
	}
	d.ask("DROP TABLE loadgen_values")
	l := begin(t, postgresPlan, "-var", "server="+d.place, "-var", "sql=INSERT INTO gone VALUES ($1)")
	r := l.result(60 * time.Second)
	require.Equal(t, exit.Failed, r.ExitCode)
	l = begin(t, postgresPlan, "-var", "server="+d.place, "-var", "sessions=120")
	many := l.result(60 * time.Second)
	require.Equal(t, exit.Failed, many.ExitCode)
	require.Contains(t, many.Verdict.Reasons[0], "(SQLSTATE 53300): write fewer sessions, or raise the server's max_connections")
	require.Contains(t, r.Verdict.Reasons[0], `op "visit": sql, character 13: relation "gone" does not exist (SQLSTATE 42P01)`)
}

// TestPostgresGivesUp what has timed out, on either executor: a load has no more backends than sessions, and ends with none, whether its statements
// wait for a lock, sleep, or cannot be cancelled; the result names the last ones.
func TestPostgresGivesUp(t *testing.T) {
	d := newDatabase(t)
	d.ask("CREATE TABLE locked AS SELECT 1 AS id; GRANT ALL ON locked TO loadgen; CREATE FUNCTION stubborn() RETURNS int LANGUAGE plpgsql AS $$ BEGIN " +
		"LOOP BEGIN PERFORM pg_sleep(20); RETURN 1; EXCEPTION WHEN query_canceled THEN NULL; END; END LOOP; END $$")
	lock, err := pgconn.Connect(t.Context(), d.address)
	require.NoError(t, err)
	defer lock.Close(context.Background())
	_, err = lock.Exec(t.Context(), "BEGIN; UPDATE locked SET id = 2").ReadAll()
	require.NoError(t, err)
	for sql, abandoned := range map[string]uint64{"UPDATE locked SET id = 3": 0, "SELECT pg_sleep(20)": 0, "SELECT stubborn()": 3} {
		for _, executor := range []string{"event loop", "blocking"} {
			l := begin(t, `
plan "slow" {}
target "db" {
	driver    = "postgres"
	endpoints = ["`+d.place+`"]
	executor  = "`+executor+`"
	user      = "loadgen"
	database  = "postgres"
	password  = secret("PG")
	table     = ""
	timeout   = "100ms"
	op "x" {
		request { sql = "`+sql+`" }
	}
}
dataset "d" {
	keys { count = 10 }
	values { size = 16 }
}
phase "load" {
	target  = target.db
	dataset = dataset.d
	ops     = { x = 1 }
	closed {
		sessions = 3
		duration = "1s"
	}
}`)
			const backends = "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'loadgen'"
			most := 0
			l.until(func() bool {
				n, err := strconv.Atoi(d.ask(backends)[0])
				require.NoError(t, err)
				most = max(most, n)
				_, err = os.Stat(l.out)
				return err == nil
			})
			r := l.result(60 * time.Second)
			p := r.Phase["load"]
			require.LessOrEqual(t, most, 3, sql)
			require.Greater(t, p.Op["x"].Timeout, uint64(6), sql)
			require.Zero(t, p.Op["x"].Error, "%s %s %v", sql, executor, p.Errors)
			require.Equal(t, abandoned, p.Generator.Abandoned, sql)
			if abandoned == 0 {
				require.Equal(t, []string{"0"}, d.ask(backends+" AND state = 'active'"), sql)
			} else {
				require.Contains(t, fmt.Sprint(r.Verdict.Reasons), "3 connections had to be closed")
				d.ask("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'loadgen'")
			}
		}
	}
}

// TestPostgresEndsIdleConnections which costs reconnects and no op, on either executor.
func TestPostgresEndsIdleConnections(t *testing.T) {
	d := newDatabase(t)
	d.ask("ALTER ROLE loadgen SET idle_session_timeout = '1s'")
	var loads []*load // at once: they wait
	for _, executor := range []string{"event loop", "blocking"} {
		loads = append(loads, begin(t, idlePlan(`driver = "postgres"
	endpoints = ["`+d.place+`"]
	executor  = "`+executor+`"
	user      = "loadgen"
	database  = "postgres"
	password  = secret("PG")`, 8)))
	}
	for _, l := range loads {
		r := l.result(60 * time.Second)
		require.Equal(t, run.Complete, r.Verdict.Completeness, r.Verdict.Reasons)
		p := r.Phase["load"]
		require.Positive(t, p.Reconnects)
		require.Equal(t, []uint64{20, 20}, []uint64{p.Op["get"].Due, p.Op["get"].Miss}, p.Errors)
	}
}
