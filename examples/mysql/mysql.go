// Package mysql keeps keys in a table of MySQL or MariaDB, through database/sql. For another database take its driver's connector in open, and its words
// for an upsert.
package mysql

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net"
	"regexp"

	"github.com/go-sql-driver/mysql"

	"github.com/loadgen/loadgen/pkg/driver"
)

// Driver is the driver.
type Driver struct{}

// Config has the attributes of a target.
type Config struct {
	User     string `hcl:"user,optional" json:"user"`
	Database string `hcl:"database,optional" json:"database"` // made if it is missing
}

// Validate refuses what is no plain name.
func (c *Config) Validate() error {
	if !regexp.MustCompile(`^\w+$`).MatchString(c.Database) {
		return fmt.Errorf("database is %q: write letters, digits and _", c.Database)
	}
	return nil
}

var (
	_ driver.Dialer   = Driver{}
	_ driver.Preparer = Driver{}
)

func (Driver) Name() string   { return "mysql" }
func (Driver) NewConfig() any { return &Config{User: "root", Database: "test"} }
func (Driver) Outcomes(v driver.Verb) []driver.Outcome {
	switch v {
	case driver.Get, driver.Delete:
		return []driver.Outcome{driver.OK, driver.Miss}
	case driver.Put:
		return []driver.Outcome{driver.OK}
	}
	return nil
}

// open returns a pool of one connection, which dial makes.
func open(cfg *Config, database string, dial func(context.Context) (net.Conn, error)) (*sql.DB, error) {
	c := mysql.NewConfig()
	c.User, c.DBName, c.Net, c.Addr = cfg.User, database, "loadgen", "link"
	c.DialFunc = func(ctx context.Context, _, _ string) (net.Conn, error) { return dial(ctx) }
	connector, err := mysql.NewConnector(c)
	if err != nil {
		return nil, err
	}
	db := sql.OpenDB(connector)
	db.SetMaxOpenConns(1)
	return db, nil
}

// Prepare makes the table.
func (Driver) Prepare(ctx context.Context, _ net.Conn, link driver.Link) error {
	cfg := link.Config.(*Config)
	db, err := open(cfg, "", link.Dial)
	if err != nil {
		return err
	}
	defer db.Close()
	for _, text := range []string{
		"create database if not exists %s",
		"create table if not exists %s.loadgen(k varbinary(512) primary key, v longblob not null)",
	} {
		if _, err := db.ExecContext(ctx, fmt.Sprintf(text, cfg.Database)); err != nil {
			return err
		}
	}
	return nil
}

func (Driver) Dial(ctx context.Context, link driver.Link) (driver.Session, error) {
	cfg := link.Config.(*Config)
	db, err := open(cfg, cfg.Database, link.Dial)
	if err != nil {
		return nil, err
	}
	s := &session{db: db, val: []byte{}} // nil would be NULL
	if err := s.begin(ctx); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// begin prepares the statements.
func (s *session) begin(ctx context.Context) (err error) {
	if s.conn, err = s.db.Conn(ctx); err != nil {
		return err
	}
	for _, p := range []struct {
		to   **sql.Stmt
		text string
	}{{&s.get, "select v from loadgen where k=?"}, {&s.put, "insert into loadgen values(?,?) on duplicate key update v=values(v)"}, {&s.del, "delete from loadgen where k=?"}} {
		if *p.to, err = s.conn.PrepareContext(ctx, p.text); err != nil {
			return err
		}
	}
	return nil
}

type session struct {
	db            *sql.DB
	conn          *sql.Conn
	get, put, del *sql.Stmt
	val           []byte
}

func (s *session) Do(ctx context.Context, req *driver.Request, reply *driver.Reply) error {
	*reply = driver.Reply{}
	switch req.Verb {
	case driver.Get:
		err := s.get.QueryRowContext(ctx, req.Key).Scan(&s.val)
		if errors.Is(err, sql.ErrNoRows) {
			reply.Outcome = driver.Miss
			return nil
		}
		reply.Value = s.val
		return s.refusal(err, reply)
	case driver.Put:
		s.val = req.Value.AppendTo(s.val[:0])
		_, err := s.put.ExecContext(ctx, req.Key, s.val)
		return s.refusal(err, reply)
	case driver.Delete:
		r, err := s.del.ExecContext(ctx, req.Key)
		if err == nil {
			if n, _ := r.RowsAffected(); n == 0 {
				reply.Outcome = driver.Miss
			}
		}
		return s.refusal(err, reply)
	}
	return nil
}

// refusal makes the server's error message a reply, and leaves other errors alone.
func (s *session) refusal(err error, reply *driver.Reply) error {
	var said *mysql.MySQLError
	if !errors.As(err, &said) {
		return err
	}
	reply.Outcome, reply.Message, reply.Code = driver.Error, []byte(said.Message), said.Number
	return nil
}

func (s *session) Close() error {
	var err error
	if s.conn != nil { // the pool waits for it
		err = s.conn.Close()
	}
	return errors.Join(err, s.db.Close())
}
