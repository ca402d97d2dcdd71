package servertest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"
)

// PostgresPassword is the password of the user loadgen, which no output may show.
const PostgresPassword = "never-to-be/seen@all"

// Postgres starts a PostgreSQL server with an empty cluster on a free loopback port, and returns its database's URL once it answers. It ends with the
// test. Settings are such as "max_connections=200".
func Postgres(t testing.TB, settings ...string) (url string) {
	t.Helper()
	return postgres(t, nil, settings...)
}

// PostgresTLS is Postgres for a server that shows a certificate to clients that ask for TLS, which the URL does not.
func PostgresTLS(t testing.TB, shows Certificate) (url string) {
	t.Helper()
	return postgres(t, &shows)
}

func postgres(t testing.TB, shows *Certificate, settings ...string) (url string) {
	t.Helper()
	bin, err := postgresBinaries()
	Require(t, "postgres", err)
	dir := openDir(t, 0o755)
	as := unprivileged(t, dir)
	data := filepath.Join(dir, "data")
	output(t, "cp", "-Rp", emptyCluster(t, bin, dir, as), data)
	s := local(t)
	args := []string{"-D", data, "-p", s.port(), "-h", "127.0.0.1", "-k", dir, "-c", "fsync=off", "-c", "shared_preload_libraries=pg_stat_statements"}
	for _, s := range settings {
		args = append(args, "-c", s)
	}
	if shows != nil {
		args = append(args, "-c", "ssl=on", "-c", "ssl_cert_file="+shows.Cert, "-c", "ssl_key_file="+ownKey(t, dir, shows.Key, as))
	}
	cmd := exec.Command(filepath.Join(bin, "postgres"), args...)
	cmd.SysProcAttr, cmd.Dir = as, dir
	s.start(cmd)
	t.Cleanup(func() { // before it is killed, so that it releases its shared memory
		_ = cmd.Process.Signal(syscall.SIGQUIT)
		select {
		case <-s.done:
		case <-time.After(startTimeout):
		}
	})
	url = fmt.Sprintf("postgres://loadgen:never-to-be%%2Fseen%%40all@%s/postgres?sslmode=disable", s.Addr)
	s.within(startTimeout, func() bool { return connects(url) == nil })
	return url
}

// emptyCluster returns the directory of a cluster without data, in the user's cache. The first server of a version makes it: that takes as long as twenty
// copies. dir is a directory that the server's user can enter.
func emptyCluster(t testing.TB, bin, dir string, as *syscall.SysProcAttr) string {
	t.Helper()
	version := strings.Fields(output(t, filepath.Join(bin, "postgres"), "--version")) // such as "postgres (PostgreSQL) 15.14 (Debian 15.14-0)"
	require.Greater(t, len(version), 2, version)
	cache, err := os.UserCacheDir()
	require.NoError(t, err)
	cache = filepath.Join(cache, "loadgen")
	kept := filepath.Join(cache, "postgres-"+version[2])
	if _, err := os.Stat(kept); err == nil {
		return kept
	}
	made, secret := filepath.Join(dir, "empty"), filepath.Join(dir, "password")
	require.NoError(t, os.WriteFile(secret, []byte(PostgresPassword), 0o644))
	cmd := exec.Command(filepath.Join(bin, "initdb"), "-D", made, "-U", "loadgen", "--auth=scram-sha-256", "--pwfile="+secret, "--no-sync", "--locale=C", "-E", "UTF8")
	cmd.SysProcAttr, cmd.Dir = as, dir
	outputOf(t, cmd)
	require.NoError(t, os.MkdirAll(cache, 0o755))
	beside, err := os.MkdirTemp(cache, "postgres-")
	require.NoError(t, err)
	defer os.RemoveAll(beside)
	output(t, "cp", "-Rp", made, filepath.Join(beside, "data"))
	if err := os.Rename(filepath.Join(beside, "data"), kept); err != nil { // another test was first
		return made
	}
	return kept
}

// ownKey copies a key to a place where only the server's user can read it, as the server requires.
func ownKey(t testing.TB, dir, key string, as *syscall.SysProcAttr) (path string) {
	t.Helper()
	path = filepath.Join(dir, "server.key")
	text, err := os.ReadFile(key)
	if err == nil {
		err = os.WriteFile(path, text, 0o600)
	}
	if err == nil && as != nil {
		err = os.Chown(path, int(as.Credential.Uid), int(as.Credential.Gid))
	}
	require.NoError(t, err)
	return path
}

func connects(url string) error {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		return err
	}
	return conn.Close(ctx)
}

// postgresBinaries finds the newest server in Debian's directories, or on PATH.
func postgresBinaries() (dir string, err error) {
	found, err := filepath.Glob("/usr/lib/postgresql/*/bin/postgres")
	if err != nil {
		return "", err
	}
	if path, err := exec.LookPath("postgres"); err == nil {
		found = append(found, path)
	}
	if len(found) == 0 {
		return "", errors.New("postgres not found")
	}
	return filepath.Dir(slices.Max(found)), nil
}

// unprivileged returns the user for a server that does not run as root, and gives that user the directory.
func unprivileged(t testing.TB, dir string) *syscall.SysProcAttr {
	t.Helper()
	if os.Geteuid() != 0 {
		return nil
	}
	as, err := user.Lookup("postgres")
	if err != nil {
		as, err = user.Lookup("nobody")
	}
	require.NoError(t, err)
	uid, uidErr := strconv.Atoi(as.Uid)
	gid, gidErr := strconv.Atoi(as.Gid)
	require.NoError(t, errors.Join(uidErr, gidErr, os.Chown(dir, uid, gid)))
	return &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}}
}
