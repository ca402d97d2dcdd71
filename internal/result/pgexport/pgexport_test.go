package pgexport_test

import (
	"context"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"github.com/loadgen/loadgen/internal/load/machine"
	"github.com/loadgen/loadgen/internal/result/pgexport"
	"github.com/loadgen/loadgen/internal/result/run"
	"github.com/loadgen/loadgen/internal/servertest"
)

const within = 20 * time.Second

func result(id string, rows int) *run.Run {
	rate, p99 := 1000.5, 0.0012
	r := run.New(run.Header{ID: id, Plan: "p", PlanDigest: "d", StartedAt: time.Date(2026, 11, 20, 17, 34, 38, 123456789, time.UTC)}, machine.Environment{Kernel: "6.1"})
	p := &run.Phase{Kind: "load", Model: "closed", Validity: run.Valid, Op: map[string]*run.Op{"get": {Figures: run.Figures{Ledger: run.Ledger{Due: 7, OK: 7}, Rate: &rate, Response: run.Latency{P99: &p99}}}}}
	p.Reconnects = 3
	p.Observe = map[string]map[string]run.Observed{"cache": {"used_memory": {Unit: "bytes", Last: &rate}, "keys": {}}}
	for i := range rows {
		p.Series = append(p.Series, run.Row{T: float64(i + 1), OK: uint64(i)})
	}
	p.Series[0].Response = run.RowResponse{P95: &rate, Quantiles: map[string]*float64{"p97": &p99}}
	r.Add("load", p)
	return r
}

func open(t *testing.T, url string) *pgexport.DB {
	t.Helper()
	db, err := pgexport.Open(t.Context(), url, within)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, db.Close()) })
	return db
}

func count(t *testing.T, conn *pgx.Conn, table string) (n int) {
	t.Helper()
	require.NoError(t, conn.QueryRow(t.Context(), "SELECT count(*) FROM loadgen."+table).Scan(&n))
	return n
}

func TestHistory(t *testing.T) {
	url := servertest.Postgres(t)
	conn, err := pgx.Connect(t.Context(), url)
	require.NoError(t, err)
	defer conn.Close(context.Background())

	t.Run("several make the schema at once", func(t *testing.T) {
		var all errgroup.Group
		for range 5 {
			all.Go(func() error {
				db, err := pgexport.Open(t.Context(), url, within)
				if err != nil {
					return err
				}
				return db.Close()
			})
		}
		require.NoError(t, all.Wait())
		require.Equal(t, 5, count(t, conn, "migrations"), "each once")
	})

	t.Run("several push the same run", func(t *testing.T) {
		added := make([]bool, 4)
		var all errgroup.Group
		for i := range added {
			db := open(t, url)
			all.Go(func() (err error) {
				added[i], err = db.Push(t.Context(), result("one", 2000), []byte(`{"name":"p"}`))
				return err
			})
		}
		require.NoError(t, all.Wait())
		require.ElementsMatch(t, []bool{true, false, false, false}, added)
		require.Equal(t, 2000, count(t, conn, "series"))
		require.Equal(t, 2, count(t, conn, "figures"), "those that are null have no row")
		require.Equal(t, 1, count(t, conn, "phase_figures WHERE figure = 'reconnects' AND value = 3"))
		require.Equal(t, 3, count(t, conn, "phase_figures"), "with max_stall_seconds and away_seconds")
		require.Equal(t, 1, count(t, conn, "series_figures WHERE t = 1 AND figure = 'response.p97' AND value = 0.0012"))
		require.Equal(t, 1, count(t, conn, "series_figures WHERE t = 1 AND figure = 'response.p95'"))
		require.Equal(t, 2, count(t, conn, "observations"))
		var last float64
		require.NoError(t, conn.QueryRow(t.Context(), `SELECT last FROM loadgen.observations WHERE field = 'used_memory' AND mean IS NULL`).Scan(&last))
		require.InDelta(t, 1000.5, last, 0)
	})

	t.Run("a run that does not fit leaves nothing, and the connection goes on", func(t *testing.T) {
		db := open(t, url)
		bad := result("bad", 10)
		bad.Phase["load"].Series[9].T = 1 // twice
		_, err := db.Push(t.Context(), bad, nil)
		require.ErrorContains(t, err, "push run bad: series: ")
		require.Equal(t, 1, count(t, conn, "runs"))
		require.Equal(t, 1, count(t, conn, "phases"))
		added, err := db.Push(t.Context(), result("bad", 10), nil)
		require.NoError(t, err)
		require.True(t, added)
	})

	t.Run("texts and numbers come back as they were", func(t *testing.T) {
		const odd = "tab\tline\n\r\\N \\t 'quoted' $1 \u00e9"
		r := result("odd", 1)
		r.Labels = map[string]string{"note": odd}
		r.Phase[odd], r.PhaseOrder = r.Phase["load"], []string{odd}
		least := math.SmallestNonzeroFloat64
		r.Phase[odd].Op["get"].Rate, r.Phase[odd].Op["get"].Due = &least, math.MaxInt64
		added, err := open(t, url).Push(t.Context(), r, nil)
		require.NoError(t, err)
		require.True(t, added)
		var label, phase string
		var due uint64
		var rate float64
		var began time.Time
		require.NoError(t, conn.QueryRow(t.Context(), `SELECT labels->>'note', phase, due, value, started_at FROM loadgen.runs
			JOIN loadgen.ops ON run = id JOIN loadgen.figures USING (run, phase, op) WHERE id = 'odd' AND figure = 'rate'`).Scan(&label, &phase, &due, &rate, &began))
		require.Equal(t, []string{odd, odd}, []string{label, phase})
		require.Equal(t, uint64(math.MaxInt64), due)
		require.Equal(t, least, rate)
		require.WithinDuration(t, r.StartedAt, began, time.Microsecond)
		_, err = conn.Exec(t.Context(), `DELETE FROM loadgen.runs WHERE id = 'odd'`)
		require.NoError(t, err)
	})

	t.Run("what a share differs by", func(t *testing.T) {
		x := run.NewExperiment("x")
		x.Matters = 0.02
		at, lo, hi := -0.01, -0.03, 0.01
		x.Figures = []run.Figure{{Variant: "b", Phase: "load", Op: "get", Metric: "hit_ratio", Difference: &at, DifferenceLo: &lo, DifferenceHi: &hi, Code: "no_difference"}}
		added, err := open(t, url).PushExperiment(t.Context(), x)
		require.NoError(t, err)
		require.True(t, added)
		var schema int
		var got [4]float64
		var code string
		require.NoError(t, conn.QueryRow(t.Context(), `SELECT schema, matters, difference, difference_lo, difference_hi, code FROM loadgen.experiments
			JOIN loadgen.comparisons ON experiment = id WHERE ratio IS NULL`).Scan(&schema, &got[0], &got[1], &got[2], &got[3], &code))
		require.Equal(t, [4]float64{x.Matters, at, lo, hi}, got)
		require.Equal(t, x.Schema, schema)
		require.Equal(t, "no_difference", code)
	})

	t.Run("a schema of before keeps its rows", func(t *testing.T) {
		_, err := conn.Exec(t.Context(), `DELETE FROM loadgen.migrations WHERE version > 2; DROP TABLE loadgen.phase_figures; DROP TABLE loadgen.series_figures; ALTER TABLE loadgen.runs DROP COLUMN draws_as;
			ALTER TABLE loadgen.experiments DROP COLUMN schema, DROP COLUMN matters;
			ALTER TABLE loadgen.comparisons DROP COLUMN difference, DROP COLUMN difference_lo, DROP COLUMN difference_hi, DROP COLUMN code`)
		require.NoError(t, err)
		runs := count(t, conn, "runs")
		open(t, url)
		require.Equal(t, runs, count(t, conn, "runs WHERE draws_as = 0"))
		require.Equal(t, 1, count(t, conn, "experiments WHERE schema = 2 AND matters IS NULL"))
		require.Equal(t, 1, count(t, conn, "comparisons WHERE difference IS NULL AND code = ''"))
	})

	t.Run("a user who may only insert can push", func(t *testing.T) {
		_, err := conn.Exec(t.Context(), `CREATE USER writer PASSWORD 'another/secret'; GRANT USAGE ON SCHEMA loadgen TO writer;
			GRANT SELECT, INSERT ON ALL TABLES IN SCHEMA loadgen TO writer`)
		require.NoError(t, err)
		config := conn.Config()
		db := open(t, fmt.Sprintf("postgres://writer:another%%2Fsecret@%s:%d/postgres?sslmode=disable", config.Host, config.Port))
		added, err := db.Push(t.Context(), result("two", 1), nil)
		require.NoError(t, err)
		require.True(t, added)
	})

	t.Run("another holds the table", func(t *testing.T) {
		tx, err := conn.Begin(t.Context())
		require.NoError(t, err)
		_, err = tx.Exec(t.Context(), `LOCK TABLE loadgen.runs`)
		require.NoError(t, err)
		db, err := pgexport.Open(t.Context(), url, 500*time.Millisecond)
		require.NoError(t, err)
		began := time.Now()
		_, err = db.Push(t.Context(), result("late", 1), nil)
		require.Error(t, err)
		require.Less(t, time.Since(began), 10*time.Second)
		_ = db.Close() // its connection may be broken
		require.NoError(t, tx.Rollback(t.Context()))
		require.Equal(t, 3, count(t, conn, "runs"))
	})

	t.Run("a schema of a later version is left alone", func(t *testing.T) {
		_, err := conn.Exec(t.Context(), `INSERT INTO loadgen.migrations (version) VALUES (99)`)
		require.NoError(t, err)
		_, err = pgexport.Open(t.Context(), url, within)
		require.ErrorContains(t, err, "the schema loadgen is of version 99, this loadgen knows up to 5: use a newer one")
	})
}

// The URL says how the connection is protected, and the server must comply.
func TestTLS(t *testing.T) {
	authority := servertest.NewAuthority(t)
	url := servertest.PostgresTLS(t, authority.Issue("127.0.0.1", time.Hour))
	asked := func(settings string) error {
		db, err := pgexport.Open(t.Context(), strings.Replace(url, "sslmode=disable", settings, 1), within)
		if err != nil {
			return err
		}
		return db.Close()
	}
	require.NoError(t, asked("sslmode=verify-full&sslrootcert="+authority.CA))
	require.NoError(t, asked("sslmode=require"))
	require.ErrorContains(t, asked("sslmode=verify-full&sslrootcert="+servertest.NewAuthority(t).CA), "certificate")
	require.ErrorContains(t, asked("sslmode=verify-full"), "certificate", "one that nobody on this machine has signed")
}
