package command_test

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Files that a plan or a command line may name. Each entry reads the path in its place.
var readers = []struct {
	name string
	plan string // in place of the phase's load and the dataset; "": the command line alone names the file
	args []string
}{
	{name: "plan", args: []string{"plan", "check", "FILE"}},
	{name: "plan to run", args: []string{"coordinator", "run", "FILE"}},
	{name: "plan to format", args: []string{"plan", "fmt", "FILE"}},
	{name: "variables", plan: `keys { count = 1 }`, args: []string{"plan", "check", "PLAN", "--var-file", "FILE"}},
	{name: "keys", plan: `keys { file = "FILE" }`, args: []string{"coordinator", "run", "PLAN"}},
	{name: "keys, CSV", plan: "keys {\n file = \"FILE\"\n form = \"csv\"\n field = \"1\"\n }", args: []string{"coordinator", "run", "PLAN"}},
	{name: "values", plan: "keys { count = 1 }\n values { file = \"FILE\" }", args: []string{"coordinator", "run", "PLAN"}},
	{name: "trace", plan: "trace", args: []string{"coordinator", "run", "PLAN"}},
	{name: "policy", args: []string{"worker", "--policy", "FILE", "--print-policy"}},
	{name: "token", args: []string{"worker", "--join", "127.0.0.1:1", "--token-file", "FILE", "--once"}},
	{name: "password", args: []string{"target", "serve", "--listen", "127.0.0.1:0", "--password-file", "FILE"}},
	{name: "log", args: []string{"log", "inspect", "FILE"}},
	{name: "pack", args: []string{"runs", "import", "FILE"}},
	{name: "result", args: []string{"runs", "show", "r", "--runs", "RUNS"}},
}

// reading returns a command that reads a file, by one of the readers.
func reading(t *testing.T, i int, path string) *exec.Cmd {
	t.Helper()
	r := readers[i]
	body, load := r.plan, "closed { iterations = 1 }"
	if body == "trace" {
		body, load = "keys { count = 1 }", "open {\n trace { file = \"FILE\" }\n }"
	}
	if !strings.Contains(body, "values") {
		body += "\n values { size = 1 }"
	}
	src := "plan \"p\" {}\ntarget \"t\" {\n driver = \"null\"\n endpoints = [\"a\"]\n}\ndataset \"d\" {\n" + body + "\n}\nphase \"p\" {\n target = target.t\n dataset = dataset.d\n " + load + "\n"
	if !strings.Contains(load, "trace") {
		src += " ops = { get = 1 }\n"
	}
	src = strings.ReplaceAll(src+"}\n", "FILE", path)
	of := filepath.Join(t.TempDir(), "plan.hcl")
	require.NoError(t, os.WriteFile(of, []byte(src), 0o600))
	runs := t.TempDir() // with a run whose result is the file
	require.NoError(t, os.Mkdir(filepath.Join(runs, "r"), 0o700))
	require.NoError(t, os.Symlink(path, filepath.Join(runs, "r", "result.json")))
	args := make([]string, len(r.args))
	for i, arg := range r.args {
		args[i] = strings.NewReplacer("FILE", path, "PLAN", of, "RUNS", runs).Replace(arg)
	}
	return command(t, args...)
}

// TestStrangeFilesAreRefusedAtOnce names, wherever a file may be named, something that is not one: a pipe that nobody writes to, a device that never
// ends.
func TestStrangeFilesAreRefusedAtOnce(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	pipe, link, directory := filepath.Join(dir, "pipe"), filepath.Join(dir, "link"), filepath.Join(dir, "directory")
	require.NoError(t, syscall.Mkfifo(pipe, 0o600))
	require.NoError(t, os.Symlink(pipe, link))
	require.NoError(t, os.Mkdir(directory, 0o700))
	for i, r := range readers {
		for _, path := range []string{pipe, link, "/dev/zero", "/dev/tty", directory} {
			t.Run(r.name+" "+filepath.Base(path), func(t *testing.T) {
				p := start(t, reading(t, i, path))
				require.NotZero(t, p.wait(60*time.Second))
				require.Contains(t, p.stdout.String()+p.stderr.String(), "only regular files are read")
			})
		}
	}
}

// TestLinesOfAHundredMegabytes are refused by everything that reads them, and are not held in memory.
func TestLinesOfAHundredMegabytes(t *testing.T) {
	t.Parallel()
	const most, size = 200 << 20, 200 << 20 // bytes, of memory and of a line
	dir := t.TempDir()
	for name, line := range map[string][2]string{
		"letters": {"", "x"}, "text": {`{"id": "`, "x"}, "lines": {"x\n\"", "\n"},
	} {
		path := filepath.Join(dir, name)
		f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE, 0o600)
		require.NoError(t, err)
		_, err = f.WriteString(line[0])
		require.NoError(t, err)
		piece := bytes.Repeat([]byte(line[1]), 1<<20)
		for range size >> 20 {
			_, err := f.Write(piece)
			require.NoError(t, err)
		}
		require.NoError(t, f.Close())
		for i, r := range readers {
			t.Run(fmt.Sprint(r.name, " of ", name), func(t *testing.T) {
				p := start(t, reading(t, i, path))
				used := peak(p.cmd.Process.Pid)
				require.NotZero(t, p.wait(3*time.Minute))
				require.NotEmpty(t, p.stderr.String()+p.stdout.String())
				require.Less(t, len(p.stdout.String()+p.stderr.String()), 4<<10)
				require.Less(t, used(), int64(most), "%s", &p.stderr)
			})
		}
		require.NoError(t, os.Remove(path))
	}
}
