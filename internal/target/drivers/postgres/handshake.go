package postgres

import (
	"context"
	"crypto/tls"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"path/filepath"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/loadgen/loadgen/pkg/driver"
)

// maxStartup bounds a message from the server before the load, in bytes.
const maxStartup = 1 << 20

// Handshake implements driver.Handshaker: it logs in, and prepares what the load executes. For a link outside a run it prepares nothing.
func (Driver) Handshake(ctx context.Context, conn net.Conn, link driver.Link) (net.Conn, error) {
	table, all, err := statements(link)
	if err != nil {
		return nil, err
	}
	pg, err := login(ctx, conn, link)
	if err != nil {
		return nil, err
	}
	if link.Run != "" && table != "" {
		if _, err := rows(ctx, pg, "SELECT pg_advisory_lock_shared("+inUse(table)+")"); err != nil {
			return nil, explain(err)
		}
	}
	for _, s := range all {
		if link.Run == "" || s.absent || s.whole {
			continue // requests that execute an absent statement end in an error
		}
		if err := s.prepare(ctx, pg); err != nil {
			return nil, err
		}
	}
	if err := pg.SyncConn(ctx); err != nil {
		return nil, err
	}
	taken, err := pg.Hijack()
	if err != nil {
		return nil, err
	}
	if link.Interrupt != nil {
		link.Interrupt(func(ctx context.Context, conn net.Conn) error { return cancel(ctx, conn, link, taken) })
	}
	return taken.Conn, nil
}

// cancel sends a CancelRequest for a connection: a server does not look at the socket of one while it executes a statement. The server closes conn when
// it has passed the request on.
func cancel(ctx context.Context, conn net.Conn, link driver.Link, taken *pgconn.HijackedConn) error {
	c, err := configOf(link)
	if err != nil {
		return err
	}
	settings, err := c.settings(link.Endpoint, "")
	if err != nil {
		return err
	}
	if settings.TLSConfig != nil {
		if conn, err = encrypt(ctx, conn, settings.TLSConfig, c.mode() == "prefer"); err != nil {
			return err
		}
	}
	b := binary.BigEndian.AppendUint32(nil, uint32(12+len(taken.SecretKey)))
	b = binary.BigEndian.AppendUint32(b, 80877102)
	b = binary.BigEndian.AppendUint32(b, taken.PID)
	if _, err := conn.Write(append(b, taken.SecretKey...)); err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, io.LimitReader(conn, maxStartup))
	return err
}

// prepare makes the server parse the statement.
func (s *statement) prepare(ctx context.Context, pg *pgconn.PgConn) error {
	d, err := pg.Prepare(ctx, s.name, s.sql, s.oids)
	if err != nil && s.op == "" {
		return fmt.Errorf("prepare %s: %w", s.name, explain(err))
	}
	if err != nil {
		where := ""
		if told, ok := errors.AsType[*pgconn.PgError](err); ok && told.Position > 0 {
			where = fmt.Sprintf(", character %d", told.Position)
		}
		return fmt.Errorf("op %q: sql%s: %w", s.op, where, explain(err))
	}
	if len(d.ParamOIDs) != len(s.parameters) {
		return fmt.Errorf("op %q: its sql has %d parameters, and the form %d: write as many in parameters", s.op, len(d.ParamOIDs), len(s.parameters))
	}
	return nil
}

// login begins a connection, over TLS if the config says so, and authenticates as its user.
func login(ctx context.Context, conn net.Conn, link driver.Link) (*pgconn.PgConn, error) {
	c, err := configOf(link)
	if err != nil {
		return nil, err
	}
	password, err := link.Secret(c.Password)
	if err != nil {
		return nil, fmt.Errorf("password of postgres: %w", err)
	}
	settings, err := c.settings(link.Endpoint, password)
	if err != nil {
		return nil, err
	}
	if settings.TLSConfig != nil {
		if conn, err = encrypt(ctx, conn, settings.TLSConfig, c.mode() == "prefer"); err != nil {
			return nil, err
		}
	}
	settings.TLSConfig, settings.Fallbacks = nil, nil
	settings.DialFunc = func(context.Context, string, string) (net.Conn, error) { return conn, nil }
	settings.LookupFunc = func(context.Context, string) ([]string, error) { return []string{"127.0.0.1"}, nil } // conn is connected already
	settings.MaxProtocolMessageBodyLen = maxStartup
	pg, err := pgconn.ConnectConfig(ctx, settings)
	if err != nil {
		return nil, explain(err)
	}
	return pg, nil
}

// settings returns pgconn's settings. The password comes only from the plan's secret, never from the worker's environment or files: the plan decides
// where it is sent.
func (c *Config) settings(endpoint, password string) (*pgconn.Config, error) {
	u := &url.URL{Scheme: "postgres"}
	if c.URL != "" {
		var err error
		if u, err = url.Parse(c.URL); err != nil {
			return nil, c.checkURL()
		}
	}
	query, err := settingsOf(u)
	if err != nil {
		return nil, c.checkURL()
	}
	query.Set("sslmode", c.mode())
	query.Set("passfile", "/dev/null")
	query.Set("connect_timeout", "0") // ctx has the deadline
	if path, ok := strings.CutPrefix(endpoint, "unix://"); ok {
		query.Set("host", filepath.Dir(path))
	} else {
		u.Host = endpoint
	}
	if c.User != "" {
		query.Del("user")
		u.User = url.User(c.User)
	}
	if c.Database != "" {
		query.Del("dbname")
		query.Del("database")
		u.Path = "/" + c.Database
	}
	if query.Get("application_name") == "" {
		query.Set("application_name", "loadgen")
	}
	u.RawQuery = strings.ReplaceAll(query.Encode(), "+", "%20") // to libpq, unlike to a form, a '+' is no blank
	settings, err := pgconn.ParseConfig(u.String())
	if err != nil {
		return nil, errors.New("url, or the worker's environment (PGSSLROOTCERT and its like), has a setting that PostgreSQL does not know, a value that does not fit, or a file that is not there")
	}
	settings.Password = password
	return settings, nil
}

// encrypt requests and begins TLS. If optional, a server without TLS may use the connection unencrypted.
func encrypt(ctx context.Context, conn net.Conn, config *tls.Config, optional bool) (net.Conn, error) {
	if _, err := conn.Write([]byte{0, 0, 0, 8, 0x04, 0xd2, 0x16, 0x2f}); err != nil { // SSLRequest
		return nil, err
	}
	var answer [1]byte // read alone: anything after it and before TLS would be an attacker's
	if _, err := io.ReadFull(conn, answer[:]); err != nil {
		return nil, fmt.Errorf("ask for TLS: %w", err)
	}
	switch {
	case answer[0] == 'S':
		secured := tls.Client(conn, config)
		if err := secured.HandshakeContext(ctx); err != nil {
			return nil, fmt.Errorf("TLS: %w", err)
		}
		return secured, nil
	case answer[0] == 'N' && optional:
		return conn, nil
	case answer[0] == 'N':
		return nil, errors.New(`the server has no TLS: write sslmode = "disable", or turn ssl on in the server`)
	}
	return nil, fmt.Errorf("ask for TLS: the server answers %q, and is no PostgreSQL", answer[0])
}

// mostTold bounds how much of a server's words is repeated outside the counting of errors, in bytes.
const mostTold = 400

// explain appends what to do to a server's error, and drops what pgconn says about the connection.
func explain(err error) error {
	var told *pgconn.PgError
	if !errors.As(err, &told) {
		return err
	}
	text := fmt.Sprintf("%s (SQLSTATE %s)", told.Message[:min(len(told.Message), mostTold)], told.Code)
	if what := remedy(told.Code); what != "" {
		text += ": " + what
	}
	return errors.New(text)
}
