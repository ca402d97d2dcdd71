package postgres

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/stretchr/testify/require"

	"github.com/loadgen/loadgen/internal/servertest"
	"github.com/loadgen/loadgen/pkg/driver"
	"github.com/loadgen/loadgen/pkg/driver/drivertest"
)

func secrets(string) (string, error) { return servertest.PostgresPassword, nil }

// server starts a server, and returns a plan's config for it.
func server(t *testing.T, address string, change func(c *Config), forms ...driver.Form) driver.Link {
	u, err := url.Parse(address)
	require.NoError(t, err)
	l := link(func(c *Config) {
		c.User, c.Database, c.Password = "loadgen", "postgres", &driver.Secret{Name: "PG"}
		if change != nil {
			change(c)
		}
	}, forms...)
	l.Endpoint, l.Secrets = u.Host, secrets
	return l
}

func dial(t testing.TB, l driver.Link) net.Conn {
	conn, err := net.Dial("tcp", l.Endpoint)
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	require.NoError(t, conn.SetDeadline(time.Now().Add(20*time.Second)))
	return conn
}

func shake(t testing.TB, l driver.Link) (net.Conn, error) {
	return Driver{}.Handshake(t.Context(), dial(t, l), l)
}

func prepare(t *testing.T, l driver.Link) error { return Driver{}.Prepare(t.Context(), dial(t, l), l) }

func session(t *testing.T, l driver.Link) drivertest.Executor {
	conn, err := shake(t, l)
	require.NoError(t, err)
	return drivertest.OverConn(t, codecOf(t, l), conn)
}

// admin runs statements as the tests' superuser.
func admin(t *testing.T, address, sql string) []*pgconn.Result {
	pg, err := pgconn.Connect(t.Context(), address)
	require.NoError(t, err)
	defer pg.Close(context.Background())
	results, err := pg.Exec(t.Context(), sql).ReadAll()
	require.NoError(t, err)
	return results
}

// TestOnAServer carries out what one server is enough for, one after the other, each with an empty schema.
func TestOnAServer(t *testing.T) {
	address := servertest.Postgres(t)
	for name, test := range map[string]func(t *testing.T, address string){
		"conformance":                           conformance,
		"values of both columns":                valuesOfBothColumns,
		"tables are made once":                  tablesAreMadeOnce,
		"tables are dropped once":               tablesAreDroppedOnce,
		"what is not the drivers stays":         whatIsNotTheDriversStays,
		"settings of the URL arrive as written": settingsOfTheURLArriveAsWritten,
		"poolers in transaction mode":           poolersInTransactionMode,
		"sockets":                               sockets,
		"identify":                              identify,
		"forms of a plan":                       formsOfAPlan,
	} {
		admin(t, address, "DROP SCHEMA public CASCADE; CREATE SCHEMA public")
		t.Run(name, func(t *testing.T) { test(t, address) })
	}
}

func conformance(t *testing.T, address string) {
	l := server(t, address, nil)
	drivertest.Run(t, drivertest.Suite{
		Driver: Driver{}, Config: l.Config, Secrets: secrets,
		Dial: func() (net.Conn, error) { return net.Dial("tcp", l.Endpoint) },
	})
}

// valuesOfBothColumns: bytes as they were put, and JSON that grows.
func valuesOfBothColumns(t *testing.T, address string) {
	text := func(s string) *driver.Value { return &driver.Value{Size: len(s), Maker: words(s)} }
	for column, want := range map[string][]string{bytea: {`{"a": 1}`, `{"a": 1}[2]`}, jsonb: {`{"a": 1}`, `[{"a": 1}, [2]]`}} {
		l := server(t, address, func(c *Config) { c.Column, c.Table = column, "of_"+column })
		require.NoError(t, prepare(t, l))
		x, key := session(t, l), []byte("k")
		for i, verb := range []driver.Verb{driver.Put, driver.Append} {
			r := x.Do(t, driver.Request{Verb: verb, Key: key, Value: text([]string{`{"a": 1}`, `[2]`}[i])}, driver.Request{Verb: driver.Get, Key: key})
			require.Equal(t, driver.OK, r[0].Outcome, "%s", r[0].Message)
			require.Equal(t, want[i], string(r[1].Value))
		}
	}
	l := server(t, address, func(c *Config) { c.Column, c.Table = jsonb, "of_jsonb" })
	r := session(t, l).Do(t, driver.Request{Verb: driver.Put, Key: []byte("k"), Value: &driver.Value{Size: 10}}, driver.Request{Verb: driver.Get, Key: []byte("k")})
	require.Equal(t, driver.Error, r[0].Outcome)
	require.Contains(t, string(r[0].Message), "invalid input syntax for type json (22P02): write values that the column takes")
	require.Equal(t, driver.OK, r[1].Outcome, "the next request is none the worse")
}

type words string

func (w words) Append(dst []byte, _ uint64) []byte { return append(dst, w...) }

// tablesAreMadeOnce, by any number of workers at a time; an existing table must have the right form.
func tablesAreMadeOnce(t *testing.T, address string) {
	l := server(t, address, nil)
	var all sync.WaitGroup
	errs := make([]error, 8)
	for i := range errs {
		all.Go(func() { errs[i] = prepare(t, l) })
	}
	all.Wait()
	require.NoError(t, errors.Join(errs...))
	require.EqualError(t, prepare(t, server(t, address, func(c *Config) { c.Column = jsonb })),
		"table loadgen_values has the columns (key bytea, value bytea), not (key bytea, value jsonb): write another table or column, or drop it (DROP TABLE loadgen_values)")
}

// tablesAreDroppedOnce by the last of several concurrent CleanUps; a connection with statements on it delays all of them.
func tablesAreDroppedOnce(t *testing.T, address string) {
	l := server(t, address, nil)
	require.NoError(t, prepare(t, l))
	loading, err := shake(t, l)
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	waits, early := make(chan error, 1), dial(t, l)
	go func() { waits <- Driver{}.CleanUp(ctx, early, l) }() // it ends with ctx
	const asking = "SELECT count(*) FROM pg_stat_activity WHERE query LIKE 'SELECT pg_try_advisory_lock%'"
	for deadline := time.Now().Add(time.Minute); string(admin(t, address, asking)[0].Rows[0][0]) == "0"; time.Sleep(10 * time.Millisecond) {
		require.True(t, time.Now().Before(deadline), "it asks for the lock")
	}
	cancel()
	require.NoError(t, <-waits)
	require.Equal(t, "1", tables(t, address), "it is in use")
	require.NoError(t, loading.Close())
	var all sync.WaitGroup
	errs := make([]error, 8)
	for i := range errs {
		conn := dial(t, l)
		all.Go(func() { errs[i] = Driver{}.CleanUp(t.Context(), conn, l) })
	}
	all.Wait()
	require.NoError(t, errors.Join(errs...))
	require.Equal(t, "0", tables(t, address))
	require.NoError(t, prepare(t, l))
	require.Equal(t, "1", tables(t, address), "made again")
}

// whatIsNotTheDriversStays: a table of the user's, and a table with values in it.
func whatIsNotTheDriversStays(t *testing.T, address string) {
	for _, change := range []string{
		"INSERT INTO loadgen_values VALUES ('k', 'v')",
		"DROP TABLE loadgen_values; CREATE TABLE loadgen_values (key bytea PRIMARY KEY, value bytea NOT NULL)",
	} {
		l := server(t, address, nil)
		require.NoError(t, prepare(t, l))
		admin(t, address, change)
		require.NoError(t, Driver{}.CleanUp(t.Context(), dial(t, l), l))
		require.Equal(t, "1", tables(t, address), change)
	}
	admin(t, address, "COMMENT ON TABLE loadgen_values IS 'made by loadgen'; CREATE VIEW v AS SELECT key FROM loadgen_values")
	l := server(t, address, nil)
	require.ErrorContains(t, Driver{}.CleanUp(t.Context(), dial(t, l), l), "drop table loadgen_values: cannot drop table loadgen_values because other objects depend on it (SQLSTATE 2BP01): drop what depends on it first")
}

// tables returns how many tables there are.
func tables(t *testing.T, address string) string {
	return string(admin(t, address, "SELECT count(*) FROM pg_tables WHERE tablename = 'loadgen_values'")[0].Rows[0][0])
}

// TestRefusals name what to do, and never the password.
func TestRefusals(t *testing.T) {
	address := servertest.Postgres(t)
	admin(t, address, "CREATE USER guest PASSWORD 'guest'; REVOKE CREATE ON SCHEMA public FROM PUBLIC; CREATE TABLE shut (key bytea PRIMARY KEY, value bytea NOT NULL)")
	guest := func(c *Config) { c.User = "guest" }
	for says, l := range map[string]driver.Link{
		`database "none" does not exist (SQLSTATE 3D000): make the database (createdb)`:       server(t, address, func(c *Config) { c.Database = "none" }),
		`password authentication failed for user "nobody" (SQLSTATE 28P01): look at user`:     server(t, address, func(c *Config) { c.User = "nobody" }),
		`the server has no TLS: write sslmode = "disable"`:                                    server(t, address, func(c *Config) { c.SSLMode = "require" }),
		`make table loadgen_values: permission denied for schema public (SQLSTATE 42501): gr`: server(t, address, guest),
	} {
		if l.Config.(*Config).User == "guest" {
			l.Secrets = func(string) (string, error) { return "guest", nil }
		}
		err := prepare(t, l)
		require.ErrorContains(t, err, says)
		require.NotContains(t, err.Error(), servertest.PostgresPassword)
	}
	l := server(t, address, func(c *Config) { c.User, c.Table = "guest", "shut" })
	l.Secrets = func(string) (string, error) { return "guest", nil }
	require.NoError(t, prepare(t, l))
	r := session(t, l).Do(t, driver.Request{Verb: driver.Get, Key: []byte("k")})
	require.Contains(t, string(r[0].Message), "permission denied for table shut (42501): grant")
	prefer := server(t, address, func(c *Config) { c.SSLMode, c.Table = "prefer", "shut" })
	_, err := shake(t, prefer)
	require.NoError(t, err, "a server without TLS may be loaded without")
}

// settingsOfTheURLArriveAsWritten, by libpq's rules, which are not those of forms.
func settingsOfTheURLArriveAsWritten(t *testing.T, address string) {
	show := driver.Form{Verb: 7, Name: "show", Words: &Form{Request: Request{SQL: "SELECT current_setting($1)", Parameters: []string{"{key}"}}}}
	for url, want := range map[string][2]string{
		"postgres://@/?options=-c%20jit%3Doff":                                  {"jit", "off"},
		"postgres://@/?application_name=a%20b%2Bc":                              {"application_name", "a b+c"},
		"postgres://@/?application_name=a+b;c":                                  {"application_name", "a+b;c"},
		"postgres://@/?application_name=a&application_name=b%26c%3Dd%25%2f%40e": {"application_name", "b&c=d%/@e"},
		"postgres://@/?dbname=none&user=nobody":                                 {"application_name", "loadgen"}, // database and user take precedence
	} {
		l := server(t, address, func(c *Config) { c.URL, c.Table = url, "" }, show)
		r := session(t, l).Do(t, driver.Request{Verb: 7, Key: []byte(want[0])})
		require.Equal(t, want[1], string(r[0].Value), "%s: %s", url, r[0].Message)
	}
}

// poolersInTransactionMode give every connection's statements to one of the server's.
func poolersInTransactionMode(t *testing.T, address string) {
	l := server(t, address, nil)
	require.NoError(t, prepare(t, l))
	pg, err := login(t.Context(), dial(t, l), l)
	require.NoError(t, err)
	_, all, err := statements(l)
	require.NoError(t, err)
	require.NoError(t, all[0].prepare(t.Context(), pg))
	require.EqualError(t, all[0].prepare(t.Context(), pg), `prepare get: prepared statement "get" already exists (SQLSTATE 42P05): write the server's endpoint, or pool_mode = session in the pooler`)
}

// TestFullDisk says so, and what to do; the connection goes on.
func TestFullDisk(t *testing.T) {
	address := servertest.Postgres(t)
	admin(t, address, "CREATE TABLESPACE small LOCATION '"+servertest.SmallDisk(t, 1<<20)+"'")
	admin(t, address, "CREATE TABLE full_up (key bytea PRIMARY KEY, value bytea NOT NULL) TABLESPACE small; ALTER TABLE full_up ALTER value SET STORAGE EXTERNAL")
	l := server(t, address, func(c *Config) { c.Table = "full_up" })
	require.NoError(t, prepare(t, l))
	x := session(t, l)
	var r []driver.Reply
	for n := 0; r == nil || r[0].Outcome == driver.OK; n++ {
		require.Less(t, n, 64, "four times as much as there is room for")
		r = x.Do(t, driver.Request{Verb: driver.Put, Key: fmt.Append(nil, n), Value: &driver.Value{Size: 64 << 10}}, driver.Request{Verb: driver.Get, Key: []byte("0")})
	}
	require.Equal(t, driver.Error, r[0].Outcome)
	require.Contains(t, string(r[0].Message), "(53100): make room on the disk of the server's data")
	require.Equal(t, driver.OK, r[1].Outcome)
	require.Len(t, r[1].Value, 64<<10)
}

// sockets dials Unix sockets by their path, which the login takes for a libpq host.
func sockets(t *testing.T, address string) {
	l := server(t, address, nil)
	_, port, err := net.SplitHostPort(l.Endpoint)
	require.NoError(t, err)
	path := filepath.Join(string(admin(t, address, "SHOW unix_socket_directories")[0].Rows[0][0]), ".s.PGSQL."+port)
	l.Endpoint = "unix://" + path
	conn, err := net.Dial("unix", path)
	require.NoError(t, err)
	conn, err = Driver{}.Handshake(t.Context(), conn, driver.Link{Endpoint: l.Endpoint, Config: l.Config, Secrets: l.Secrets})
	require.NoError(t, err)
	require.NoError(t, conn.Close())
}

// TestTLS as libpq's modes have it.
func TestTLS(t *testing.T) {
	authority := servertest.NewAuthority(t)
	address := servertest.PostgresTLS(t, authority.Issue("127.0.0.1", time.Hour))
	for mode, says := range map[string]string{"prefer": "", "require": "", "verify-full": "certificate signed by unknown authority"} {
		l := server(t, address, func(c *Config) { c.SSLMode = mode })
		err := prepare(t, l)
		if says != "" {
			require.ErrorContains(t, err, says)
			continue
		}
		require.NoError(t, err, mode)
		r := session(t, l).Do(t, driver.Request{Verb: driver.Get, Key: []byte("k")})
		require.Equal(t, driver.Miss, r[0].Outcome)
	}
}

func identify(t *testing.T, address string) {
	l := server(t, address, nil)
	id, err := Driver{}.Identify(t.Context(), dial(t, l), l)
	require.NoError(t, err)
	require.Equal(t, "postgres", id["server"])
	require.Regexp(t, `^1[0-9]`, id["version"])
	require.Equal(t, "off", id["fsync"])
	require.Equal(t, "on", id["synchronous_commit"])
	require.Equal(t, "128MB", id["shared_buffers"])
	require.NotContains(t, strings.Join(append(mapValues(id), ""), " "), servertest.PostgresPassword)
}

func mapValues(m map[string]string) (all []string) {
	for _, v := range m {
		all = append(all, v)
	}
	return all
}

// formsOfAPlan: a statement that cannot be prepared is named with the server's position; others are executed.
func formsOfAPlan(t *testing.T, address string) {
	admin(t, address, "CREATE TABLE visits (page text PRIMARY KEY, n int NOT NULL)")
	visit := func(sql string, parameters ...string) driver.Form {
		return driver.Form{Verb: 7, Name: "visit", Words: &Form{Request: Request{SQL: sql, Parameters: parameters}}}
	}
	none := func(c *Config) { c.Table = "" }
	for says, f := range map[string]driver.Form{
		`op "visit": sql, character 10: syntax error at or near "FORM" (SQLSTATE 42601)`:              visit("SELECT * FORM visits"),
		`op "visit": its sql has 1 parameters, and the form 2: write as many in parameters`:           visit("SELECT n FROM visits WHERE page = $1", "{key}", "{n}"),
		`op "visit": sql, character 15: relation "gone" does not exist (SQLSTATE 42P01)`:              visit("SELECT 1 FROM gone"),
		`op "visit": sql: cannot insert multiple commands into a prepared statement (SQLSTATE 42601)`: visit("SELECT 1; SELECT 2"),
	} {
		_, err := shake(t, server(t, address, none, f))
		require.ErrorContains(t, err, says)
	}
	counts := visit("INSERT INTO visits VALUES ($1, 1) ON CONFLICT (page) DO UPDATE SET n = visits.n + 1 RETURNING n, page", "p-{key}")
	counts.Words.(*Form).Capture = map[string]string{"where": "column page"}
	l := server(t, address, none, counts)
	require.NoError(t, prepare(t, l))
	x := session(t, l)
	for _, n := range []string{"1", "2"} {
		r := x.Do(t, driver.Request{Verb: 7, Key: []byte("a")})
		require.Equal(t, driver.OK, r[0].Outcome, "%s", r[0].Message)
		require.Equal(t, n, string(r[0].Value))
		require.Equal(t, driver.Bag{{Name: "captured.where", Text: "p-a"}}, r[0].Found.Bag)
	}
	r := x.Do(t, driver.Request{Verb: driver.Get, Key: []byte("a")})
	require.Contains(t, string(r[0].Message), "write table in the target")
}

// TestStatementsAreCounted: pg_stat_statements counts them as they were sent, and the comment names their verb.
func TestStatementsAreCounted(t *testing.T) {
	address := servertest.Postgres(t)
	admin(t, address, "CREATE EXTENSION pg_stat_statements")
	l := server(t, address, nil)
	require.NoError(t, prepare(t, l))
	x := session(t, l)
	var requests []driver.Request
	for range 5 {
		requests = append(requests, driver.Request{Verb: driver.Put, Key: []byte("k"), Value: &driver.Value{Size: 5}}, driver.Request{Verb: driver.Get, Key: []byte("k")}, driver.Request{Verb: driver.Get, Key: []byte("l")})
	}
	x.Do(t, requests...)
	l.Run = ""
	conn, err := shake(t, l)
	require.NoError(t, err)
	question, err := Driver{}.AppendQuestion(nil, l)
	require.NoError(t, err)
	_, err = conn.Write(question)
	require.NoError(t, err)
	var b []byte
	for told, n := map[string]string(nil), 0; ; {
		chunk := make([]byte, 4096)
		got, err := conn.Read(chunk)
		require.NoError(t, err)
		b = append(b, chunk[:got]...)
		if told, n, err = (Driver{}).ParseFigures(b); n > 0 || err != nil {
			require.NoError(t, err)
			require.Equal(t, []string{"5", "10", "0", "0"}, []string{told["statements_put_calls"], told["statements_get_calls"], told["statements_delete_calls"], told["statements_append_calls"]})
			for _, f := range figures {
				require.Contains(t, told, f.Name)
			}
			return
		}
	}
}
