package command_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"net/http"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/loadgen/loadgen/internal/base/quantity"
	"github.com/loadgen/loadgen/internal/faultproxy"
	"github.com/loadgen/loadgen/internal/servertest"
)

// watcher is a client of a live page.
type watcher struct {
	t     *testing.T
	reply *http.Response
	lines *bufio.Scanner
	parts map[string]string
	ended bool
}

// watching opens the stream of a live page.
func watching(t *testing.T, address string) *watcher {
	t.Helper()
	client := http.Client{Timeout: 5 * time.Minute, Transport: &http.Transport{DisableKeepAlives: true}}
	reply, err := client.Get("http://" + address + "/stream")
	require.NoError(t, err)
	require.Equal(t, http.StatusOK, reply.StatusCode)
	w := &watcher{t: t, reply: reply, lines: bufio.NewScanner(reply.Body), parts: map[string]string{}}
	t.Cleanup(func() { _ = reply.Body.Close() }) // it may have been closed
	return w
}

// until reads the stream until the page says something, or is over.
func (w *watcher) until(words string) {
	w.t.Helper()
	event, open := "", ""
	for w.lines.Scan() {
		line := w.lines.Text()
		if name, ok := strings.CutPrefix(line, "event: "); ok {
			event = name
		}
		data, ok := strings.CutPrefix(line, "data: ")
		switch {
		case !ok:
		case event == "end":
			w.ended = true
		case event == "shown":
			if words != "" && strings.Contains(w.page(), words) {
				return
			}
		default:
			var p struct {
				ID, HTML string
				More     bool
			}
			require.NoError(w.t, json.Unmarshal([]byte(data), &p))
			if open += p.HTML; !p.More {
				w.parts[p.ID], open = open, ""
			}
		}
	}
	require.NoError(w.t, w.lines.Err())
	require.Empty(w.t, words, "the page never said so: %s", w.page())
}

// page is what the page shows now.
func (w *watcher) page() string {
	text := w.parts[""]
	for strings.Contains(text, "<live-part") {
		before, rest, _ := strings.Cut(text, `<live-part id="`)
		id, after, _ := strings.Cut(rest, `"></live-part>`)
		text = before + w.parts[id] + after
	}
	return text
}

// TestLivePage watches a run from a browser's side: whoever comes in the middle, or back, sees all of it so far; at the end the page has the report,
// with the result's figures and those of /metrics, and --linger keeps it up.
func TestLivePage(t *testing.T) {
	t.Parallel()
	l := begin(t, closedPlan+"assert \"all\" { that = phase.gets.op.get.ok > 0 }\n", "-var", "duration=6s", "--http", "127.0.0.1:0", "--linger", "10m")
	address := l.page()
	require.Contains(t, l.stderr.String(), "live page at http://"+address+"/\n")
	frame, err := fetch(address, "/")
	require.NoError(t, err)
	require.NotContains(t, frame, "http://")
	require.NotContains(t, frame, "https://")
	reply, err := http.Head("http://" + address + "/")
	require.NoError(t, err)
	require.NoError(t, reply.Body.Close())
	require.Regexp(t, `^default-src 'none'; style-src 'sha256-\S+'; script-src 'sha256-\S+'; connect-src 'self'; frame-ancestors 'none'$`, reply.Header.Get("Content-Security-Policy"))

	first := watching(t, address)
	first.until("so far: the figures as if the run ended now")
	require.NoError(t, first.reply.Body.Close())
	back := watching(t, address)
	back.until(`<a href="#r1-p2">gets</a>`)
	require.Contains(t, back.page(), `<section id="r1-p1">`, "the phase before")
	require.Contains(t, back.page(), "<h2>gets <small>")
	require.Contains(t, back.page(), "Workers, now")
	back.until("")
	require.True(t, back.ended)

	l.told("the report stays on the live page for 10m0s; Ctrl-C ends it")
	late := watching(t, address)
	late.until("")
	require.Equal(t, back.page(), late.page())
	require.Contains(t, late.page(), "loadgen report")
	metrics, err := fetch(address, "/metrics")
	require.NoError(t, err)
	l.signal(syscall.SIGINT)
	r := l.whole()
	ok := r.Phase["gets"].Op["get"].OK
	require.Contains(t, metrics, fmt.Sprintf("loadgen_ops_total{op=\"get\",outcome=\"ok\",phase=\"gets\",run=%q} %d\n", r.ID, ok))
	require.Contains(t, late.page(), quantity.Thousands(ok)+" ok")
	_, err = fetch(address, "/")
	require.Error(t, err)
}

// TestLivePageInABrowser opens the page in the middle of a run, through a proxy that breaks its connection: it shows all of the run so far, and comes back
// by itself. At the end of the run it stays where its reader is, and has become the page of loadgen report, with the counts of /metrics.
func TestLivePageInABrowser(t *testing.T) {
	t.Parallel()
	b := servertest.Chromium(t)
	l := begin(t, denseLoad, "--http", "127.0.0.1:0", "--linger", "10m")
	proxy, err := faultproxy.Start(l.page())
	require.NoError(t, err)
	defer proxy.Close()
	l.told("\ngets  ")
	b.Open("http://"+proxy.Addr()+"/", 1280)
	b.Until(`document.querySelector("#r1-p2 .figures") !== null`)
	require.Regexp(t, "^fill ", b.Eval(`document.querySelector("#r1-p1 h2").textContent`), "the phase before")

	proxy.Set(faultproxy.Fault{Down: true})
	proxy.Reset()
	b.Until(`document.querySelector("#link").textContent === "connection lost: trying again"`)
	const now = `document.querySelector(".now h2").textContent`
	before := b.Eval(now)
	proxy.Set(faultproxy.Fault{})
	b.Until(now + " !== " + strconv.Quote(before))
	require.Equal(t, "live", b.Eval(`document.querySelector("#link").textContent`))

	const top = `document.querySelector("#r1-p1 h2").getBoundingClientRect().top`
	b.Eval(`document.querySelector("#r1-p1").scrollIntoView()`)
	there, err := strconv.ParseFloat(b.Eval(top), 64)
	require.NoError(t, err)
	l.signal(syscall.SIGINT)
	b.Until(`document.querySelector("#link").textContent === "the run has ended"`)
	require.Equal(t, "null", b.Eval(`document.querySelector(".now")`))
	after, err := strconv.ParseFloat(b.Eval(top), 64)
	require.NoError(t, err)
	require.InDelta(t, there, after, 1, "a window scrolls by whole pixels, and lines are not as high")
	require.NotContains(t, strings.Join(b.Console, "\n"), "exceptionThrown")
	const words = `document.querySelector("article").textContent.replace(/\s+/g, "")`
	shown := b.Eval(words)
	metrics, err := fetch(proxy.Addr(), "/metrics")
	require.NoError(t, err)
	l.signal(syscall.SIGINT)
	r := l.result(time.Minute)
	ok := r.Phase["gets"].Op["get"].OK
	require.Contains(t, metrics, fmt.Sprintf("loadgen_ops_total{op=\"get\",outcome=\"ok\",phase=\"gets\",run=%q} %d\n", r.ID, ok))
	require.Contains(t, shown, quantity.Thousands(ok)+"ok")
	report := filepath.Join(t.TempDir(), "report.html")
	require.Zero(t, start(t, command(t, "report", "--runs", l.runs, "-o", report)).wait(time.Minute))
	b.Open("file://"+report, 1280)
	require.Equal(t, b.Eval(words), shown)
}

// TestLingerFlagIsChecked before any load.
func TestLingerFlagIsChecked(t *testing.T) {
	t.Parallel()
	for says, args := range map[string][]string{
		"--linger keeps the page of --http up: add --http HOST:PORT": {"--linger", "10m"},
		"--linger -1s: write a positive duration":                    {"--linger", "-1s", "--http", "127.0.0.1:0"},
	} {
		l := begin(t, closedPlan, args...)
		require.Equal(t, 2, l.wait(60*time.Second))
		require.Contains(t, l.stderr.String(), says)
	}
}
