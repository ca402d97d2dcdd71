package pgexport

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
)

// DB is a connection to a database with the schema. One goroutine may use it at a time.
type DB struct {
	conn   *pgconn.PgConn
	within time.Duration // time limit of a transaction
	secret []string      // texts that errors must not contain
}

// Open connects to the database that a URL names (postgres://USER:PASSWORD@HOST:PORT/DATABASE?sslmode=…; anything missing comes from PGPASSWORD,
// ~/.pgpass and libpq's other variables) and creates or migrates the schema. Without an sslmode, a database on another machine is opened with
// verify-full. within limits connecting, and each transaction. This package's errors never contain the password.
func Open(ctx context.Context, address string, within time.Duration) (*DB, error) {
	config, err := parse(address)
	if err != nil {
		return nil, err
	}
	db := &DB{within: within, secret: secrets(address, config.Password)}
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	if db.conn, err = pgconn.ConnectConfig(ctx, config); err != nil {
		return nil, db.plain(fmt.Errorf("connect to %s: %w", config.Host, err))
	}
	if err := db.migrate(ctx); err != nil {
		return nil, db.plain(errors.Join(err, db.Close()))
	}
	return db, nil
}

// polite is the time in which the server may end a transaction or the connection in an orderly way.
const polite = 5 * time.Second

// Close ends the connection.
func (db *DB) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), polite)
	defer cancel()
	return db.plain(db.conn.Close(ctx))
}

// parse parses the URL. Its errors never quote it: a malformed URL may hold a password anywhere.
func parse(address string) (*pgconn.Config, error) {
	u, err := url.Parse(address)
	if err != nil || u.Scheme != "postgres" && u.Scheme != "postgresql" {
		return nil, errors.New("the database's address is no URL of PostgreSQL: write postgres://USER@HOST:PORT/DATABASE, with characters such as " +
			"'@' in a password as %40, or leave the password to PGPASSWORD")
	}
	config, err := pgconn.ParseConfig(address)
	if err == nil && u.Query().Get("sslmode") == "" && os.Getenv("PGSSLMODE") == "" && !near(config) {
		// The URL is kept as written and only appended to, because libpq's rules for it differ from those of net/url. The last of several settings
		// counts.
		separator := "?"
		if u.RawQuery != "" {
			separator = "&"
		}
		config, err = pgconn.ParseConfig(strings.TrimRight(address, "?&") + separator + "sslmode=verify-full")
	}
	if err != nil {
		return nil, errors.New("the database's URL has a setting that PostgreSQL does not know, or a value that does not fit: look at its sslmode, " +
			"its port, and what follows the '?'")
	}
	return config, nil
}

// near reports whether every address to which a connection may be made is on this machine.
func near(config *pgconn.Config) bool {
	hosts := []string{config.Host}
	for _, f := range config.Fallbacks {
		hosts = append(hosts, f.Host)
	}
	return !slices.ContainsFunc(hosts, func(host string) bool {
		ip := net.ParseIP(host)
		return host != "localhost" && !strings.HasPrefix(host, "/") && (ip == nil || !ip.IsLoopback())
	})
}

// secrets returns the forms in which a password may appear.
func secrets(address, password string) (list []string) {
	if u, err := url.Parse(address); err == nil {
		if written, ok := u.User.Password(); ok {
			list = append(list, written, url.QueryEscape(written), strings.TrimPrefix(url.UserPassword("", written).String(), ":"))
		}
	}
	return append(list, password)
}

// plain returns the error as one line of text, without secrets.
func (db *DB) plain(err error) error {
	if err == nil {
		return nil
	}
	text := strings.Join(strings.Fields(err.Error()), " ") // one line
	for _, secret := range db.secret {
		if secret != "" {
			text = strings.ReplaceAll(text, secret, "xxxxx")
		}
	}
	return errors.New(text)
}

// inTransaction calls f in a transaction. The server also has a timeout for the transaction, in case this side never ends it.
func (db *DB) inTransaction(ctx context.Context, f func() error) error {
	limit := db.within.Milliseconds()
	err := db.script(ctx, fmt.Sprintf("BEGIN; SET LOCAL statement_timeout = %d; SET LOCAL idle_in_transaction_session_timeout = %d", limit, limit))
	if err == nil {
		err = f()
	}
	if err != nil {
		return errors.Join(err, db.rollBack(context.WithoutCancel(ctx)))
	}
	return db.script(ctx, "COMMIT")
}

// rollBack ends a failed transaction. If the connection was lost, or cut in the middle of an answer, there is no transaction left.
func (db *DB) rollBack(ctx context.Context) error {
	if db.conn.IsClosed() {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, polite)
	defer cancel()
	return db.script(ctx, "ROLLBACK")
}
