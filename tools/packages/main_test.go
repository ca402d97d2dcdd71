package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sassoftware/go-rpmutils"
	"github.com/stretchr/testify/require"

	"github.com/loadgen/loadgen/internal/servertest"
)

// TestPackages installs the Debian package into an empty root, runs README's commands from it, and removes it without a trace. The other packages have
// the same files, with the same modes; and the same binary makes the same bytes again.
func TestPackages(t *testing.T) {
	dist := t.TempDir()
	binary := filepath.Join(dist, "loadgen-linux-"+runtime.GOARCH)
	execute(t, filepath.Join("..", ".."), "go", "build", "-ldflags=-s -w", "-o", binary, "./cmd/loadgen")
	script := func() { execute(t, "..", "sh", "packages.sh", dist, runtime.GOARCH) }
	script()
	first := sums(t, dist)
	script()
	require.Equal(t, first, sums(t, dist))

	all, err := filepath.Glob(filepath.Join(dist, "*.rpm"))
	require.NoError(t, err)
	name := strings.TrimSuffix(all[0], ".rpm")
	want := inRPM(t, name+".rpm")
	require.Equal(t, want, inTar(t, name+".apk"))
	archive := inTar(t, name+".tar.gz")
	require.ElementsMatch(t, slices.Collect(maps.Values(archive)), slices.Collect(maps.Values(want)))
	for path, mode := range map[string]string{"/loadgen": "755 ", "/plans/olric.sh": "755 ", "/plans/web.hcl": "644 ", "/man/loadgen-run.1.gz": "644 ", "/loadgen-worker.service": "644 "} {
		require.True(t, strings.HasPrefix(archive["/"+filepath.Base(name)+path], mode), path)
	}

	_, err = exec.LookPath("dpkg")
	servertest.Require(t, "dpkg", err)
	root := t.TempDir()
	require.NoError(t, os.MkdirAll(filepath.Join(root, "var/lib/dpkg/updates"), 0o755))
	require.NoError(t, os.MkdirAll(filepath.Join(root, "var/lib/dpkg/info"), 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(root, "var/lib/dpkg/status"), nil, 0o644))
	dpkg := func(args ...string) {
		execute(t, "", "dpkg", append([]string{"--root=" + root, "--force-not-root,bad-path", "--log=/dev/null"}, args...)...)
	}
	dpkg("--install", name+".deb")
	zsh := want["/usr/share/zsh/site-functions/_loadgen"]
	delete(want, "/usr/share/zsh/site-functions/_loadgen")
	want["/usr/share/zsh/vendor-completions/_loadgen"] = zsh
	require.Equal(t, want, installed(t, root))
	readme(t, filepath.Join(root, "usr"))
	dpkg("--purge", "loadgen")
	require.Empty(t, installed(t, root))
}

// readme runs README's commands with an installed loadgen.
func readme(t *testing.T, usr string) {
	path, err := exec.LookPath("redis-server")
	servertest.Require(t, "redis", err)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	addr := l.Addr().String()
	_, port, err := net.SplitHostPort(addr)
	require.NoError(t, err)
	require.NoError(t, l.Close())
	work := t.TempDir()
	server := exec.Command(path, "--port", port, "--bind", "127.0.0.1", "--save", "", "--dir", work)
	require.NoError(t, server.Start())
	defer func() { _, _ = server.Process.Kill(), server.Wait() }()
	require.Eventually(t, func() bool {
		conn, err := net.Dial("tcp", addr)
		if err == nil {
			err = conn.Close()
		}
		return err == nil
	}, time.Minute, 20*time.Millisecond)
	loadgen := func(args ...string) { execute(t, work, filepath.Join(usr, "bin/loadgen"), args...) }
	loadgen("plan", "check", filepath.Join(usr, "share/loadgen/plans/hydra.hcl"))
	loadgen("capacity", addr, "--budget", "5s") // before the plan, which leaves its keys
	loadgen("plan", "init", "--endpoint", addr, "mine.hcl")
	loadgen("run", "mine.hcl", "-var", "duration=1s")
	loadgen("report", "-o", "report.html")
}

// execute runs a command, which must not fail: exit codes 4 and 7 of loadgen are those of figures taken on a busy machine.
func execute(t *testing.T, dir, name string, args ...string) {
	c := exec.Command(name, args...)
	c.Dir = dir
	out, err := c.CombinedOutput()
	if c.ProcessState != nil && (c.ProcessState.ExitCode() == 4 || c.ProcessState.ExitCode() == 7) {
		err = nil
	}
	require.NoError(t, err, "%s %v: %s", name, args, out)
}

func sums(t *testing.T, dist string) map[string]string {
	all, err := filepath.Glob(filepath.Join(dist, "loadgen_*"))
	require.NoError(t, err)
	require.Len(t, all, 4)
	of := map[string]string{}
	for _, name := range all {
		content, err := os.ReadFile(name)
		require.NoError(t, err)
		of[name] = fmt.Sprintf("%x", sha256.Sum256(content))
	}
	return of
}

// installed returns the files below a root, beside dpkg's own, with modes and digests.
func installed(t *testing.T, root string) map[string]string {
	all := map[string]string{}
	require.NoError(t, filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		rel, _ := filepath.Rel(root, path)
		if entry.IsDir() && rel == "var/lib/dpkg" {
			return fs.SkipDir
		}
		if err != nil || entry.IsDir() {
			return err
		}
		content, err := os.ReadFile(path)
		info, _ := entry.Info()
		all["/"+rel] = fmt.Sprintf("%o %x", info.Mode(), sha256.Sum256(content))
		return err
	}))
	return all
}

func inRPM(t *testing.T, name string) map[string]string {
	f, err := os.Open(name)
	require.NoError(t, err)
	defer f.Close()
	rpm, err := rpmutils.ReadRpm(f)
	require.NoError(t, err)
	payload, err := rpm.PayloadReaderExtended()
	require.NoError(t, err)
	all := map[string]string{}
	for {
		info, err := payload.Next()
		if err == io.EOF {
			return all
		}
		require.NoError(t, err)
		if info.Mode()&0o170000 == 0o100000 {
			content, err := io.ReadAll(payload)
			require.NoError(t, err)
			all[info.Name()] = fmt.Sprintf("%o %x", info.Mode()&0o777, sha256.Sum256(content))
		}
	}
}

// inTar reads an archive, or an Alpine package: gzip streams, one after another, that are one archive.
func inTar(t *testing.T, name string) map[string]string {
	content, err := os.ReadFile(name)
	require.NoError(t, err)
	z, err := gzip.NewReader(bytes.NewReader(content))
	require.NoError(t, err)
	all := map[string]string{}
	for r := tar.NewReader(z); ; {
		head, err := r.Next()
		if err == io.EOF {
			return all
		}
		require.NoError(t, err)
		if head.Typeflag == tar.TypeReg && head.Name[0] != '.' {
			content, err := io.ReadAll(r)
			require.NoError(t, err)
			all["/"+head.Name] = fmt.Sprintf("%o %x", head.Mode, sha256.Sum256(content))
		}
	}
}
