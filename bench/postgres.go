package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
)

// postgresEnv is the environment of PostgreSQL clients: the server knows one user, who needs no password.
var postgresEnv = []string{"PGUSER=loadgen", "PGDATABASE=postgres", "PGSSLMODE=disable"}

// postgresProgram returns the path of the newest server, from Debian's directories or PATH, or its name if there is none.
func postgresProgram() string {
	found, err := filepath.Glob("/usr/lib/postgresql/*/bin/postgres")
	if err == nil && len(found) > 0 {
		return slices.Max(found)
	}
	if path, err := exec.LookPath("postgres"); err == nil {
		return path
	}
	return "postgres"
}

// unprivileged returns the prefix for commands that must not run as root.
func unprivileged() []string {
	if os.Geteuid() == 0 {
		return []string{"setpriv", "--reuid=postgres", "--regid=postgres", "--clear-groups"}
	}
	return nil
}

// postgresArgs returns the command line of a server whose cluster is below dir.
func postgresArgs(port, dir string) []string {
	data := filepath.Join(dir, "postgres")
	return append(unprivileged(), postgresProgram(), "-D", data, "-p", port, "-h", "127.0.0.1", "-k", data, "-c", "fsync=off",
		"-c", "shared_preload_libraries=pg_stat_statements")
}

// initPostgres makes an empty cluster below dir, replacing an existing one.
func initPostgres(ctx context.Context, dir string) error {
	data := filepath.Join(dir, "postgres")
	if err := errors.Join(os.Chmod(dir, 0o755), os.RemoveAll(data), os.Mkdir(data, 0o700)); err != nil {
		return err
	}
	if os.Geteuid() == 0 {
		as, err := user.Lookup("postgres")
		if err != nil {
			return err
		}
		uid, uidErr := strconv.Atoi(as.Uid)
		gid, gidErr := strconv.Atoi(as.Gid)
		if err := errors.Join(uidErr, gidErr, os.Chown(data, uid, gid)); err != nil {
			return err
		}
	}
	argv := append(unprivileged(), filepath.Join(filepath.Dir(postgresProgram()), "initdb"), "-D", data, "-U", "loadgen", "--auth=trust", "--no-sync", "--locale=C", "-E", "UTF8")
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.Dir = data
	if words, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("initdb: %w\n%s", err, words)
	}
	return nil
}

// postgresStats returns how many selects by key have found their row, and how many have not.
func postgresStats(port string) (map[string]float64, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	pg, err := pgconn.Connect(ctx, "postgres://loadgen@127.0.0.1:"+port+"/postgres?sslmode=disable")
	if err != nil {
		return nil, err
	}
	defer pg.Close(ctx)
	results, err := pg.Exec(ctx, `CREATE EXTENSION IF NOT EXISTS pg_stat_statements;
		SELECT coalesce(sum(rows), 0), coalesce(sum(calls - rows), 0) FROM pg_stat_statements
		WHERE query LIKE '/* loadgen get */%' OR query LIKE 'SELECT abalance FROM pgbench_accounts%'`).ReadAll()
	if err != nil {
		return nil, err
	}
	row := results[len(results)-1].Rows[0]
	hits, hitsErr := strconv.ParseFloat(string(row[0]), 64)
	misses, missesErr := strconv.ParseFloat(string(row[1]), 64)
	return map[string]float64{"get_hits": hits, "get_misses": misses}, errors.Join(hitsErr, missesErr)
}

// pgbench sends one request at a time on a connection, whatever the cell's pipeline: a row of its own table, by key.
func pgbench() peer {
	common := func(port string) []string { return []string{"-h", "127.0.0.1", "-p", port, "-n"} }
	p := peer{version: []string{"--version"}, client: client{
		name: "pgbench",
		args: func(c *cell, port string, ops int64) []string {
			if c.server != "postgres" || c.op != "get" {
				return nil
			}
			return append(common(port), "-S", "-M", "prepared", "-c", strconv.Itoa(sessions), "-j", "1", "-t", strconv.FormatInt(ops/sessions, 10))
		},
		fill: func(_ *cell, port string) []string {
			return append(common(port), "-i", "-q", "-s", strconv.Itoa(keys/100_000))
		},
		rate: number(regexp.MustCompile(`tps = ([\d.]+) \(without`)),
	}}
	if own := filepath.Join(filepath.Dir(postgresProgram()), "pgbench"); filepath.IsAbs(own) { // Debian's on PATH is a wrapper script
		p.exe = own
	}
	return p
}
