package servertest

import (
	"bytes"
	"context"
	"errors"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"
)

// browseTimeout is how long a browser may take to show a page.
const browseTimeout = time.Minute

// Chromium opens a file in a Chromium with a fresh profile and the given flags. It returns the document once it has loaded and run its scripts, and
// every line on the console: scripts' output, errors, and what the page's policy forbade.
func Chromium(t testing.TB, path string, flags ...string) (document string, console []string) {
	t.Helper()
	return Visit(t, "file://"+path, flags...)
}

// Visit is Chromium for a URL.
func Visit(t testing.TB, url string, flags ...string) (document string, console []string) {
	t.Helper()
	exe, err := exec.LookPath("chromium")
	if err != nil {
		err = errors.New("chromium not found")
	}
	Require(t, "chromium", err)
	ctx, cancel := context.WithTimeout(context.Background(), browseTimeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, exe, append([]string{
		"--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
		"--disable-component-update", "--disable-sync", "--hide-scrollbars", "--user-data-dir=" + t.TempDir(), "--enable-logging=stderr", "--v=0", "--dump-dom",
	}, append(flags, url)...)...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // it has children
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	var out, words bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &words
	if err := cmd.Run(); err != nil {
		t.Fatalf("chromium %s: %v\n%s", url, err, &words)
	}
	for line := range strings.Lines(words.String()) {
		if strings.Contains(line, ":CONSOLE") {
			console = append(console, strings.TrimSpace(line))
		}
	}
	return out.String(), console
}
