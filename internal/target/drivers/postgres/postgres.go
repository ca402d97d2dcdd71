// Package postgres is the driver of PostgreSQL, over the extended query protocol, version 3.0 (PostgreSQL's documentation, chapter "Frontend/Backend
// Protocol").
//
// A connection begins with pgconn's startup: SSLRequest, authentication, settings. Then the load's statements are prepared on it, each under its own
// name. A request consists of Bind, Execute and Sync. It is a transaction of its own, so that requests can be pipelined on a connection and a failed
// one affects no other.
//
//	request  statement                                    answer                  outcome
//	get      SELECT value … WHERE key = $1                a row                   ok; none: miss
//	put      INSERT … ON CONFLICT (key) DO UPDATE         INSERT 0 n              ok
//	delete   DELETE … WHERE key = $1                      DELETE n                ok; 0: miss
//	append   INSERT … DO UPDATE SET value = value || …    INSERT 0 n              ok
//	any      -                                            SQLSTATE of class 40    conflict: serialization failure, deadlock
//	any      -                                            another ErrorResponse   error, with what to do
//	any      -                                            FATAL or PANIC          the connection is lost, for that reason
//
// The table is created before the first load, and has the form (key bytea PRIMARY KEY, value bytea or jsonb NOT NULL). A clear phase drops it if the
// driver created it, it is empty, and no connection of this or another run has prepared statements on it. The database's advisory locks show this:
//
//	lock                          mode        held by
//	hashtext('loadgen TABLE')     exclusive   a connection that creates or drops the table, for that transaction
//	hashtext('loadgen'), TABLE    shared      each connection that has prepared statements on it, until it ends
//	hashtext('loadgen'), TABLE    exclusive   the connection that drops it, until it ends
package postgres

import (
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"github.com/loadgen/loadgen/pkg/driver"
)

// Config is what a target of this driver takes.
type Config struct {
	// URL is a libpq connection URI without host, port and password: "postgres://USER@/DATABASE?application_name=load".
	URL string `hcl:"url,optional" json:"url"`
	// User and Database take precedence over the URL.
	User     string `hcl:"user,optional" json:"user"`
	Database string `hcl:"database,optional" json:"database"`
	// Password authenticates every connection; nil if the server needs none.
	Password *driver.Secret `hcl:"password,optional" json:"password"`
	// SSLMode is libpq's: "disable", "prefer", "require", "verify-ca" or "verify-full"; "" for the URL's, or "disable" if it has none.
	SSLMode string `hcl:"sslmode,optional" json:"sslmode"`
	// Table holds the values. It is created if it does not exist; "" creates none, for a target whose ops the plan words.
	Table string `hcl:"table,optional" json:"table"`
	// Column is the type of the values: "bytea" or "jsonb".
	Column string `hcl:"column,optional" json:"column"`
}

const (
	bytea = "bytea"
	jsonb = "jsonb"
)

var (
	modes      = []string{"disable", "prefer", "require", "verify-ca", "verify-full"}
	identifier = regexp.MustCompile(`^[a-z_][a-z0-9_]{0,62}$`)
)

// Validate says what is wrong with the config.
func (c *Config) Validate() error {
	var errs []error
	if c.Table != "" && !identifier.MatchString(c.Table) {
		errs = append(errs, fmt.Errorf("table is %.80q; write lower-case letters, digits and _, at most 63", c.Table))
	}
	if c.Column != bytea && c.Column != jsonb {
		errs = append(errs, fmt.Errorf("column is %.80q; write %q or %q", c.Column, bytea, jsonb))
	}
	if mode := c.mode(); !slices.Contains(modes, mode) {
		errs = append(errs, fmt.Errorf("sslmode is %.80q; write one of %q", mode, modes))
	}
	for name, text := range map[string]string{"user": c.User, "database": c.Database} {
		if strings.ContainsRune(text, 0) || len(text) > 63 {
			errs = append(errs, fmt.Errorf("%s is %.80q; write a name of at most 63 bytes", name, text))
		}
	}
	return errors.Join(append(errs, c.checkURL())...)
}

// checkURL looks for what the URL must not set. No error repeats the URL, since anything in it may be a password.
func (c *Config) checkURL() error {
	if c.URL == "" {
		return nil
	}
	u, err := url.Parse(c.URL)
	if err != nil || u.Scheme != "postgres" && u.Scheme != "postgresql" {
		return errors.New(`url is none of PostgreSQL; write "postgres://USER@/DATABASE?SETTING=VALUE"`)
	}
	query, err := settingsOf(u)
	if err != nil {
		return errors.New("url has a % that begins no escape; write %25 for a %")
	}
	if _, set := u.User.Password(); set || query.Has("password") {
		return errors.New(`url has a password; write password = secret("NAME") instead: plans are kept`)
	}
	if u.Host != "" || query.Has("host") || query.Has("hostaddr") || query.Has("port") {
		return errors.New("url has a host or a port; write these in endpoints, and url without them: postgres://USER@/DATABASE")
	}
	for _, name := range []string{"passfile", "service", "servicefile", "sslkey", "sslcert", "sslpassword"} {
		if query.Has(name) {
			return fmt.Errorf("url has %s, which names a file or secret of the worker's; leave it to the worker's own environment (PGSSLCERT, PGSSLKEY)", name)
		}
	}
	return nil
}

// mode returns the sslmode in use.
func (c *Config) mode() string {
	if c.SSLMode != "" {
		return c.SSLMode
	}
	u, err := url.Parse(c.URL)
	if err != nil {
		return "disable"
	}
	query, _ := settingsOf(u) // checkURL reports the error
	switch {
	case query.Get("sslmode") != "":
		return query.Get("sslmode")
	case query.Get("ssl") == "true": // JDBC's word, which libpq takes too
		return "require"
	}
	return "disable"
}

// settingsOf reads a URL's settings by libpq's rules (fe-connect.c, conninfo_uri_parse_params): '+' and ';' stand for themselves, and the last of
// several with one name counts.
func settingsOf(u *url.URL) (url.Values, error) {
	query, err := url.ParseQuery(strings.NewReplacer("+", "%2B", ";", "%3B").Replace(u.RawQuery))
	for name, all := range query {
		query[name] = all[len(all)-1:]
	}
	return query, err
}

// Driver is the postgres driver. Its zero value is ready to use.
type Driver struct{}

var (
	_ driver.Wire       = Driver{}
	_ driver.Identifier = Driver{}
	_ driver.Cleaner    = Driver{}
	_ driver.Handshaker = Driver{}
	_ driver.Encrypter  = Driver{}
)

// Name returns "postgres".
func (Driver) Name() string { return "postgres" }

// NewConfig returns a *Config.
func (Driver) NewConfig() any { return &Config{Table: "loadgen_values", Column: bytea} }

// Outcomes lists how requests can end.
func (Driver) Outcomes(v driver.Verb) []driver.Outcome { return possible[v] }

var possible = map[driver.Verb][]driver.Outcome{
	driver.Get:    {driver.OK, driver.Miss, driver.Conflict},
	driver.Delete: {driver.OK, driver.Miss, driver.Conflict},
	driver.Put:    {driver.OK, driver.Conflict},
	driver.Append: {driver.OK, driver.Conflict},
}

// Builtin returns "": no built-in node speaks SQL.
func (Driver) Builtin() string { return "" }

// Encrypted implements driver.Encrypter.
func (Driver) Encrypted(config any) bool {
	c, ok := config.(*Config)
	return ok && c.mode() != "disable"
}

// NewCodec returns a codec that all connections share, since they all prepare the same statements.
func (Driver) NewCodec(link driver.Link) (driver.Codec, error) {
	_, all, err := statements(link)
	if err != nil {
		return nil, err
	}
	c := &codec{run: link.Run}
	for _, s := range all {
		c.by[s.verb] = s
	}
	return c, nil
}

func configOf(link driver.Link) (*Config, error) {
	return driver.ConfigOf[*Config]("postgres", link.Config)
}
