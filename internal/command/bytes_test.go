package command_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/loadgen/loadgen/internal/base/exit"
)

// TestMemoryOfLargeValues compares the peak with what plan check says: it is at most 1.2 times that.
func TestMemoryOfLargeValues(t *testing.T) {
	t.Parallel()
	pages := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch piece := strings.Repeat("x", 1<<20); {
		case r.Method != http.MethodGet:
		case strings.HasSuffix(r.Host, ".chunked"):
			for range 60 {
				_, _ = io.WriteString(w, piece) // the client may have gone
			}
		case strings.HasSuffix(r.Host, ".endless"):
			for _, err := io.WriteString(w, piece); err == nil; _, err = io.WriteString(w, piece) {
			}
		default:
			w.Header().Set("Content-Length", fmt.Sprint(60<<20))
			for range 60 {
				_, _ = io.WriteString(w, piece)
			}
		}
	}))
	defer pages.Close()
	page, node := pages.Listener.Addr().String(), addresses(cluster(t, 1))[0]
	const gets, mixed = "ops = { get = 1 }", "ops = { get = 1, put = 1 }"
	for _, c := range []struct {
		name, target, values, load string
		most                       int64 // MiB, besides the prediction
		says                       string
	}{
		{"web, 60 MiB", `driver = "web"` + "\n host = \"a.whole\"", "size = 1", gets + "\n closed {\n sessions = 32\n iterations = 1\n }", 143, ""},
		{"web, chunked", `driver = "web"` + "\n host = \"a.chunked\"", "size = 1", gets + "\n closed {\n sessions = 32\n iterations = 1\n }", 143, ""},
		{"web, checked", "driver = \"web\"\n host = \"a.endless\"\n max_body = \"1GiB\"", "size = 24\n checked = true", gets + "\n closed {\n sessions = 32\n iterations = 1\n }", 256, "all incomplete replies would take more than 128 MiB"},
		{"redis, 16 MiB", `driver = "redis"`, "size = \"16MiB\"\n checked = true", mixed + "\n closed {\n sessions = 4\n iterations = 10\n }", 1 << 20, ""},
		{"redis, 128 x 1 MiB", `driver = "redis"`, "size = \"1MiB\"\n checked = true", mixed + "\n closed {\n sessions = 128\n iterations = 4\n }", 1 << 20, ""},
		{"redis, 32 MiB", `driver = "redis"`, `size = "32MiB"`, mixed + "\n closed {\n sessions = 4\n iterations = 6\n pipeline = 8\n }", 1 << 20, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			addr := node
			if strings.HasPrefix(c.name, "web") {
				addr = page
			}
			src := fmt.Sprintf(`
plan "memory" {}
target "t" {
	%s
	endpoints = [%q]
	timeout   = "60s"
}
dataset "d" {
	keys { count = 8 }
	values {
		%s
	}
}
phase "load" {
	target  = target.t
	dataset = dataset.d
	max_bad = 1
	%s
}
phase "clean" {
	target  = target.t
	dataset = dataset.d
	clear {}
}`, c.target, addr, c.values, c.load)
			path := filepath.Join(t.TempDir(), "plan.hcl")
			require.NoError(t, os.WriteFile(path, []byte(src), 0o600))
			said := predicted(t, path)
			l := beginFile(t, path)
			used := peak(l.cmd.Process.Pid)
			l.wait(time.Minute)
			most := used()
			t.Logf("%d MiB, %d predicted", most>>20, said)
			require.Less(t, most, min(c.most<<20, int64(said)<<20*6/5))
			require.Contains(t, l.stdout.String(), c.says)
		})
	}
}

// TestMemoryOfPacks imports packs of less than a megabyte, and refuses them, in the 200 MB that SECURITY.md says.
func TestMemoryOfPacks(t *testing.T) {
	t.Parallel()
	l := begin(t, strings.Replace(briefExperiment, "repeat = 3", "repeat = 1", 1))
	l.wait(60 * time.Second)
	x := onlyExperiment(t, l.runs)
	rows := func(text string, n int) string { return "[" + strings.Repeat(text+",", n-1) + text + "]" }
	for name, c := range map[string]struct{ id, file, from, to, says string }{
		"equal rows":    {x.Runs[0].ID, "result.json", `"series": \[[^]]*\]`, `"series": ` + rows(`{"ok":1}`, 120_000), "phase.load.series: 120000 of "},
		"wide settings": {x.ID, "settings.json", `"variants":\[[^]]*\]`, `"variants":` + rows("{}", 5_000_000), "decoding it would take more than 64 MiB"},
	} {
		t.Run(name, func(t *testing.T) {
			runs := t.TempDir()
			require.NoError(t, os.CopyFS(runs, os.DirFS(l.runs)))
			path := filepath.Join(runs, c.id, c.file)
			is, err := os.ReadFile(path)
			require.NoError(t, err)
			changed := regexp.MustCompile(c.from).ReplaceAll(is, []byte(c.to))
			require.Greater(t, len(changed), len(is)+1e6)
			require.NoError(t, os.WriteFile(path, changed, 0o600))
			pack := filepath.Join(runs, "pack.tar.gz")
			output(t, nil, "loadgen", "runs", "export", x.ID, "--runs", runs, "-o", pack)
			info, err := os.Stat(pack)
			require.NoError(t, err)
			require.Less(t, info.Size(), int64(1e6))
			p := start(t, command(t, "runs", "import", pack, "--runs", filepath.Join(runs, "there")))
			used := peak(p.cmd.Process.Pid)
			require.Equal(t, exit.Failed, p.wait(60*time.Second), "%s", &p.stdout)
			most := used()
			require.Contains(t, p.stderr.String(), c.says)
			t.Logf("a pack of %d bytes took %d MB", info.Size(), most/1e6)
			require.LessOrEqual(t, most, int64(200e6))
		})
	}
}
