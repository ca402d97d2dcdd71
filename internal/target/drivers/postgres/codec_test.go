package postgres

import (
	"encoding/binary"
	"fmt"
	"net"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgproto3"
	"github.com/stretchr/testify/require"

	"github.com/loadgen/loadgen/pkg/driver"
)

func link(change func(c *Config), forms ...driver.Form) driver.Link {
	c := Driver{}.NewConfig().(*Config)
	if change != nil {
		change(c)
	}
	return driver.Link{Config: c, Forms: forms, Run: "run-1"}
}

func codecOf(t testing.TB, l driver.Link) *codec {
	c, err := Driver{}.NewCodec(l)
	require.NoError(t, err)
	return c.(*codec)
}

// encode joins messages from the server.
func encode(t testing.TB, messages ...pgproto3.BackendMessage) (b []byte) {
	for _, m := range messages {
		var err error
		b, err = m.Encode(b)
		require.NoError(t, err)
	}
	return b
}

func tag(text string) pgproto3.BackendMessage {
	return &pgproto3.CommandComplete{CommandTag: []byte(text)}
}

var (
	bound = &pgproto3.BindComplete{}
	ready = &pgproto3.ReadyForQuery{TxStatus: 'I'}
)

// TestRequests checks that pgproto3 can read the requests.
func TestRequests(t *testing.T) {
	value := &driver.Value{Size: 30, Seed: 1}
	whole := value.AppendTo(nil)
	for column, format := range map[string]int16{bytea: 1, jsonb: 0} {
		c := codecOf(t, link(func(c *Config) { c.Column = column }))
		for verb, want := range map[driver.Verb]*pgproto3.Bind{
			driver.Get:    {PreparedStatement: "get", ParameterFormatCodes: []int16{1}, Parameters: [][]byte{[]byte("k\x00")}, ResultFormatCodes: []int16{format}},
			driver.Delete: {PreparedStatement: "delete", ParameterFormatCodes: []int16{1}, Parameters: [][]byte{[]byte("k\x00")}, ResultFormatCodes: []int16{0}},
			driver.Put:    {PreparedStatement: "put", ParameterFormatCodes: []int16{1, format}, Parameters: [][]byte{[]byte("k\x00"), whole}, ResultFormatCodes: []int16{0}},
			driver.Append: {PreparedStatement: "append", ParameterFormatCodes: []int16{1, format}, Parameters: [][]byte{[]byte("k\x00"), whole}, ResultFormatCodes: []int16{0}},
		} {
			req := &driver.Request{Verb: verb, Key: []byte("k\x00"), Value: value}
			made := c.AppendRequest([]byte("before"), req)
			expected, err := want.Encode([]byte("before"))
			require.NoError(t, err)
			expected, err = (&pgproto3.Execute{}).Encode(expected)
			require.NoError(t, err)
			expected, err = (&pgproto3.Sync{}).Encode(expected)
			require.NoError(t, err)
			require.Equal(t, expected, made, "%s %s", column, verb)
			require.Zero(t, testing.AllocsPerRun(100, func() { made = c.AppendRequest(made[:0], req) }))
		}
	}
}

func TestReplies(t *testing.T) {
	row := &pgproto3.DataRow{Values: [][]byte{[]byte("value"), []byte("more")}}
	for name, x := range map[string]struct {
		verb    driver.Verb
		says    []pgproto3.BackendMessage
		outcome driver.Outcome
		value   string
		message string
	}{
		"hit":      {driver.Get, []pgproto3.BackendMessage{bound, row, tag("SELECT 1"), ready}, driver.OK, "value", ""},
		"rows":     {driver.Get, []pgproto3.BackendMessage{bound, row, row, tag("SELECT 2"), ready}, driver.OK, "value", ""},
		"null":     {driver.Get, []pgproto3.BackendMessage{bound, &pgproto3.DataRow{Values: [][]byte{nil}}, tag("SELECT 1"), ready}, driver.OK, "", ""},
		"miss":     {driver.Get, []pgproto3.BackendMessage{bound, tag("SELECT 0"), ready}, driver.Miss, "", ""},
		"put":      {driver.Put, []pgproto3.BackendMessage{bound, tag("INSERT 0 1"), ready}, driver.OK, "", ""},
		"deleted":  {driver.Delete, []pgproto3.BackendMessage{bound, tag("DELETE 1"), ready}, driver.OK, "", ""},
		"absent":   {driver.Delete, []pgproto3.BackendMessage{bound, tag("DELETE 0"), ready}, driver.Miss, "", ""},
		"ten":      {driver.Delete, []pgproto3.BackendMessage{bound, tag("DELETE 10"), ready}, driver.OK, "", ""},
		"notice":   {driver.Put, []pgproto3.BackendMessage{&pgproto3.NoticeResponse{Message: "n"}, bound, tag("INSERT 0 1"), &pgproto3.ParameterStatus{Name: "a", Value: "b"}, ready}, driver.OK, "", ""},
		"conflict": {driver.Put, []pgproto3.BackendMessage{&pgproto3.ErrorResponse{SeverityUnlocalized: "ERROR", Code: "40001", Message: "could not serialize"}, ready}, driver.Conflict, "", "could not serialize (40001)"},
		"deadlock": {driver.Put, []pgproto3.BackendMessage{bound, &pgproto3.ErrorResponse{SeverityUnlocalized: "ERROR", Code: "40P01", Message: "deadlock detected"}, ready}, driver.Conflict, "", "deadlock detected (40P01)"},
		"no json":  {driver.Put, []pgproto3.BackendMessage{&pgproto3.ErrorResponse{SeverityUnlocalized: "ERROR", Code: "22P02", Message: "invalid input syntax for type json", Detail: "secret"}, ready}, driver.Error, "", `invalid input syntax for type json (22P02): write values that the column takes, such as a record`},
		"disk":     {driver.Put, []pgproto3.BackendMessage{bound, &pgproto3.ErrorResponse{SeverityUnlocalized: "ERROR", Code: "53100", Message: "could not extend file"}, ready}, driver.Error, "", "could not extend file (53100): make room on the disk of the server's data"},
		"pooled":   {driver.Get, []pgproto3.BackendMessage{&pgproto3.ErrorResponse{SeverityUnlocalized: "ERROR", Code: "26000", Message: `prepared statement "get" does not exist`}, ready}, driver.Error, "", `prepared statement "get" does not exist (26000): write the server's endpoint, or pool_mode = session in the pooler`},
		"half":     {driver.Get, []pgproto3.BackendMessage{bound, row, &pgproto3.ErrorResponse{SeverityUnlocalized: "ERROR", Code: "57014", Message: "canceled"}, ready}, driver.Error, "", "canceled (57014): raise the server's statement_timeout"},
	} {
		t.Run(name, func(t *testing.T) {
			c, b := codecOf(t, link(nil)), encode(t, x.says...)
			var reply driver.Reply
			for i := range b {
				n, err := c.Parse(b[:i], x.verb, &reply)
				require.NoError(t, err)
				require.Zero(t, n)
			}
			n, err := c.Parse(append(b, "behind"...), x.verb, &reply)
			require.NoError(t, err)
			require.Equal(t, len(b), n)
			require.Equal(t, x.outcome.String(), reply.Outcome.String())
			require.Equal(t, x.value, string(reply.Value))
			require.Equal(t, x.message, string(reply.Message))
			if x.outcome == driver.OK {
				require.Zero(t, testing.AllocsPerRun(100, func() { _, _ = c.Parse(b, x.verb, &reply) }))
			}
		})
	}
}

// TestEndedByTheServer: the connection is lost with the server's reason, whether a reply is owed or not.
func TestEndedByTheServer(t *testing.T) {
	c := codecOf(t, link(nil))
	b := encode(t, &pgproto3.ErrorResponse{Severity: "FATAL", SeverityUnlocalized: "FATAL", Code: "57P01", Message: "terminating connection due to administrator command"})
	const says = "postgres: terminating connection due to administrator command (57P01): see who ends connections"
	var reply driver.Reply
	_, err := c.Parse(b, driver.Get, &reply)
	require.ErrorContains(t, err, says)
	_, err = c.Aside(b)
	require.ErrorContains(t, err, says)
	n, err := c.Aside(b[:10])
	require.NoError(t, err)
	require.Zero(t, n)
	notice := encode(t, &pgproto3.NoticeResponse{Message: "n"})
	n, err = c.Aside(append(notice, 'Z'))
	require.NoError(t, err)
	require.Equal(t, len(notice), n)
	_, err = c.Aside([]byte("HTTP/1.1"))
	require.ErrorIs(t, err, driver.ErrUnasked)
}

func TestStrangeBytesAreErrors(t *testing.T) {
	c := codecOf(t, link(nil))
	for name, b := range map[string][]byte{
		"http":           []byte("HTTP/1.1 400 Bad Request\r\n"),
		"length":         {'D', 0, 0, 0, 3},
		"huge":           {'D', 0x7f, 0xff, 0xff, 0xff},
		"ready alone":    encode(t, ready),
		"row afterwards": encode(t, bound, tag("SELECT 0"), &pgproto3.DataRow{}, ready),
		"torn row":       append([]byte{'D', 0, 0, 0, 10}, 0, 1, 0, 0, 0, 9),
		"negative":       append([]byte{'D', 0, 0, 0, 10}, 0, 1, 0xff, 0xff, 0xff, 0xfe),
		"long row":       append([]byte{'D', 0, 0, 0, 11}, 0, 1, 0, 0, 0, 0, 7),
		"copy":           encode(t, bound, &pgproto3.CopyInResponse{}),
	} {
		var reply driver.Reply
		_, err := c.Parse(b, driver.Get, &reply)
		require.Error(t, err, name)
	}
}

// FuzzParse: whatever the server sends, a reply uses only bytes that are there, and a whole reply is read as pgproto3 reads it.
func FuzzParse(f *testing.F) {
	f.Add(encode(f, bound, &pgproto3.DataRow{Values: [][]byte{[]byte("v")}}, tag("SELECT 1"), ready))
	f.Add(encode(f, &pgproto3.ErrorResponse{Code: "40001", Message: "m"}, ready))
	f.Add(encode(f, bound, tag("DELETE 0"), ready))
	c := codecOf(f, link(nil))
	f.Fuzz(func(t *testing.T, b []byte) {
		for verb := range driver.Append {
			var reply driver.Reply
			n, err := c.Parse(b, verb, &reply)
			require.False(t, n < 0 || n > len(b) || err != nil && n != 0)
			if n > 0 {
				require.Contains(t, []driver.Outcome{driver.OK, driver.Miss, driver.Conflict, driver.Error}, reply.Outcome)
				again, err := c.Parse(b[:n], verb, &reply)
				require.NoError(t, err)
				require.Equal(t, n, again, "what comes behind does not matter")
			}
		}
		if len(b) > 0 {
			n, err := c.Aside(b)
			require.False(t, n < 0 || n > len(b) || err != nil && n != 0)
		}
		_, n, err := Driver{}.ParseFigures(b)
		require.False(t, n < 0 || n > len(b) || err != nil && n != 0)
	})
}

func TestAffected(t *testing.T) {
	for text, want := range map[string]int{"SELECT 0": 0, "INSERT 0 12": 12, "UPDATE 999999999": 999999999, "DELETE 10": 10, "CREATE TABLE": 1, "": 1} {
		require.Equal(t, want, affected(append([]byte(text), 0)), text)
	}
}

func TestForms(t *testing.T) {
	visit := driver.Form{Verb: 7, Name: "visit", Words: &Form{
		Request: Request{SQL: "UPDATE visits\n  SET n = n + 1 WHERE page = $1 AND run = $2", Parameters: []string{"{key}", "r-{run}"}},
		Expect:  &Expect{None: "error"},
	}}
	w, err := Driver{}.CheckForm(&Config{}, visit)
	require.NoError(t, err)
	require.True(t, w.Keyed)
	require.False(t, w.Stores)
	require.Equal(t, `UPDATE visits SET n = n + 1 WHERE page = $1 AND run = $2, $1 = "key:1", $2 = "r-run-1"`,
		Driver{}.ShowForm(&Config{}, visit, &driver.Request{Key: []byte("key:1")}, "run-1"))
	c := codecOf(t, link(nil, visit))
	want, err := (&pgproto3.Bind{PreparedStatement: "op7", ParameterFormatCodes: []int16{0, 0}, Parameters: [][]byte{[]byte("key:1"), []byte("r-run-1")}, ResultFormatCodes: []int16{0}}).Encode(nil)
	require.NoError(t, err)
	made := c.AppendRequest(nil, &driver.Request{Verb: 7, Key: []byte("key:1")})
	require.Equal(t, want, made[:len(want)])
	var reply driver.Reply
	_, err = c.Parse(encode(t, bound, tag("UPDATE 0"), ready), 7, &reply)
	require.NoError(t, err)
	require.Equal(t, driver.Error, reply.Outcome)
	require.Contains(t, string(reply.Message), "the plan expects one")
}

func TestFormsSayWhatToWrite(t *testing.T) {
	for says, words := range map[string]*Form{
		"sql is empty":                        {Request: Request{SQL: " ; -- nothing\n;"}},
		"sql is BEGIN, whose transaction":     {Request: Request{SQL: "begin; select 1"}},
		"sql is COPY, which is not a request": {Request: Request{SQL: " COPY t FROM STDIN"}},
		"sql is SET, which changes":           {Request: Request{SQL: "SET work_mem = 1"}},
		"sql has {key} in its text":           {Request: Request{SQL: "SELECT '{key}'"}},
		"sql has 70000 bytes":                 {Request: Request{SQL: strings.Repeat("x", 70000)}},
		"sql has a NUL":                       {Request: Request{SQL: "SELECT '\x00'"}},
		"parameters[1] is \"{kye}\"":          {Request: Request{SQL: "SELECT $1, $2", Parameters: []string{"{key}", "{kye}"}}},
		"parameters are 300":                  {Request: Request{SQL: "SELECT 1", Parameters: make([]string, 300)}},
		"none is \"maybe\"":                   {Request: Request{SQL: "SELECT 1"}, Expect: &Expect{None: "maybe"}},
	} {
		_, err := Driver{}.CheckForm(&Config{}, driver.Form{Words: words})
		require.ErrorContains(t, err, says)
	}
	_, err := Driver{}.CheckForm(&Config{}, driver.Form{Words: &Form{Request: Request{SQL: "SELECT '{a,b}'::text[]"}}})
	require.NoError(t, err, "braces are SQL's own")
}

func TestConfigSaysWhatToWrite(t *testing.T) {
	for says, change := range map[string]func(c *Config){
		"table is \"a;b\"":      func(c *Config) { c.Table = "a;b" },
		"column is \"json\"":    func(c *Config) { c.Column = "json" },
		"sslmode is \"allow\"":  func(c *Config) { c.SSLMode = "allow" },
		"sslmode is \"strict\"": func(c *Config) { c.URL = "postgres:///db?sslmode=strict" },
		"url is none":           func(c *Config) { c.URL = "mysql://x" },
		"url has a password":    func(c *Config) { c.URL = "postgres://u:canary@/db" },
		"url has a host":        func(c *Config) { c.URL = "postgres://h/db" },
		"url has sslkey":        func(c *Config) { c.URL = "postgres:///db?sslkey=/etc/shadow" },
		"database is":           func(c *Config) { c.Database = strings.Repeat("d", 64) },
	} {
		err := link(change).Config.(*Config).Validate()
		require.ErrorContains(t, err, says)
		require.NotContains(t, err.Error(), "canary")
	}
	for url, mode := range map[string]string{"": "disable", "postgres:///db": "disable", "postgres:///db?sslmode=require": "require"} {
		l := link(func(c *Config) { c.URL = url })
		require.NoError(t, l.Config.(*Config).Validate())
		require.Equal(t, mode != "disable", Driver{}.Encrypted(l.Config), url)
	}
}

// TestSettings come from the plan, and the password only from its secret.
func TestSettings(t *testing.T) {
	for name, value := range map[string]string{"PGPASSWORD": "canary", "PGHOST": "elsewhere", "PGSSLMODE": "require", "PGDATABASE": "theirs", "PGSERVICE": ""} {
		t.Setenv(name, value)
	}
	c := link(func(c *Config) {
		c.URL, c.Database = "postgres://bob@/a?application_name=x&statement_timeout=5s", "shop"
	}).Config.(*Config)
	s, err := c.settings("db.example:5433", "")
	require.NoError(t, err)
	require.Equal(t, []any{"db.example", uint16(5433), "bob", "shop", "", "x", "5s"},
		[]any{s.Host, s.Port, s.User, s.Database, s.Password, s.RuntimeParams["application_name"], s.RuntimeParams["statement_timeout"]})
	require.Nil(t, s.TLSConfig)
	s, err = (&Config{User: "ann"}).settings("unix:///run/postgresql/.s.PGSQL.5432", "secret")
	require.NoError(t, err)
	require.Equal(t, []any{"/run/postgresql", "ann", "theirs", "secret", "loadgen"}, []any{s.Host, s.User, s.Database, s.Password, s.RuntimeParams["application_name"]})
	s, err = (&Config{SSLMode: "verify-full"}).settings("db.example:5433", "")
	require.NoError(t, err)
	require.Equal(t, "db.example", s.TLSConfig.ServerName)
}

func TestFigures(t *testing.T) {
	names := map[string]bool{}
	for _, f := range (Driver{}).Figures() {
		require.False(t, names[f.Name])
		names[f.Name] = true
		require.Equal(t, f, Driver{}.Describe(f.Name))
	}
	question, err := Driver{}.AppendQuestion(nil, driver.Link{Config: &Config{}})
	require.NoError(t, err)
	size := binary.BigEndian.Uint32(question[1:])
	require.Equal(t, byte('Q'), question[1+size])
	two := func(name, value string) pgproto3.BackendMessage {
		return &pgproto3.DataRow{Values: [][]byte{[]byte(name), []byte(value)}}
	}
	answer := encode(t, two("connections", "3"), tag("SELECT 1"), ready, &pgproto3.ErrorResponse{Code: "42P01", Message: "no extension"}, ready, &pgproto3.EmptyQueryResponse{}, ready)
	for i := range answer {
		_, n, err := Driver{}.ParseFigures(answer[:i])
		require.NoError(t, err)
		require.Zero(t, n)
	}
	told, n, err := Driver{}.ParseFigures(answer)
	require.NoError(t, err)
	require.Equal(t, len(answer), n)
	require.Equal(t, map[string]string{"connections": "3"}, told)
	_, _, err = Driver{}.ParseFigures(encode(t, &pgproto3.ErrorResponse{Code: "42501", Message: "no"}, ready))
	require.ErrorContains(t, err, "GRANT")
	require.Equal(t, "other", Driver{}.Describe("other").Name)
}

func ExampleDriver_ShowForm() {
	fmt.Println(Driver{}.ShowForm(nil, driver.Form{Words: &Form{Request: Request{SQL: "SELECT $1", Parameters: []string{"{n}"}}}}, &driver.Request{N: 5}, ""))
	// Output: SELECT $1, $1 = "5"
}

// TestResumePassesOverRows: no row is looked at twice, and an error, after which a server may hang up, is left to Parse.
func TestResumePassesOverRows(t *testing.T) {
	row := "D\x00\x00\x00\x0b\x00\x01\x00\x00\x00\x01v"
	rows := "2\x00\x00\x00\x04" + row + row
	var p driver.Progress
	whole, err := new(codec).Resume([]byte(rows[:len(rows)-1]), &p)
	require.NoError(t, err)
	require.False(t, whole)
	require.Equal(t, len(rows)-len(row), p.At)
	whole, err = new(codec).Resume([]byte(rows+"E"), &p)
	require.NoError(t, err)
	require.False(t, whole, "an error that is not there whole")
	require.Equal(t, len(rows), p.At)
	whole, err = new(codec).Resume([]byte(rows+"E\x00\x00\x00\x05\x00"), &p)
	require.NoError(t, err)
	require.True(t, whole)
	_, err = new(codec).Resume([]byte("D\x00\x00\x00\x00"), new(driver.Progress))
	require.Error(t, err)
}

// TestAPoolerThatTakesNoOptions says what to write.
func TestAPoolerThatTakesNoOptions(t *testing.T) {
	near, far := net.Pipe()
	defer far.Close()
	said := encode(t, &pgproto3.ErrorResponse{Severity: "FATAL", Code: "08P01", Message: "unsupported startup parameter: options"})
	go func() { // ends with its answer
		_, _ = far.Read(make([]byte, 4096))
		_, _ = far.Write(said)
	}()
	_, err := Driver{}.Handshake(t.Context(), near, link(func(c *Config) { c.URL = "postgres://loadgen@/postgres?options=-c%20jit%3Doff" }))
	require.ErrorContains(t, err, "unsupported startup parameter: options")
	require.ErrorContains(t, err, "leave them out, or write ignore_startup_parameters = options in the pooler")
}
