package servertest

import (
	"bufio"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// browseTimeout is how long a browser may take to answer, and a page to come to what a test waits for.
const browseTimeout = time.Minute

// Tab is a tab of a Chromium with a fresh profile, driven by the DevTools protocol: JSON with a zero byte behind each message, over the pipes that the
// browser finds at its file descriptors 3 and 4.
type Tab struct {
	// Console has every line on the page's console since it was opened, in JSON: scripts' output, errors, and what the page's policy forbade.
	Console []string

	t       testing.TB
	orders  *os.File
	answers *os.File
	lines   *bufio.Reader
	session string
	id      int
}

// devtools is an order to a browser, its answer, or an event.
type devtools struct {
	ID      int             `json:"id,omitempty"`
	Session string          `json:"sessionId,omitempty"`
	Method  string          `json:"method,omitempty"`
	Params  any             `json:"params,omitempty"`
	Result  json.RawMessage `json:"result,omitempty"`
	Error   json.RawMessage `json:"error,omitempty"`
}

// Chromium starts the browser. It ends with the test.
func Chromium(t testing.TB) *Tab {
	t.Helper()
	exe := program(t, "chromium", "chromium")
	theirs, orders, err := os.Pipe()
	require.NoError(t, err)
	answers, told, err := os.Pipe()
	require.NoError(t, err)
	cmd := exec.Command(exe, "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
		"--disable-component-update", "--disable-sync", "--hide-scrollbars", "--user-data-dir="+t.TempDir(), "--remote-debugging-pipe")
	cmd.ExtraFiles = []*os.File{theirs, told}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // it has children
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		kill := func() { _ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) } // they may have ended
		late := time.AfterFunc(browseTimeout, kill)
		require.NoError(t, errors.Join(orders.Close(), answers.Close())) // it ends with its pipes
		_ = cmd.Wait()                                                   // however it ended
		late.Stop()
		kill()
	})
	require.NoError(t, errors.Join(theirs.Close(), told.Close()))

	b := &Tab{t: t, orders: orders, answers: answers, lines: bufio.NewReader(answers)}
	var target struct{ TargetID, SessionID string }
	b.order(&target, "Target.createTarget", map[string]any{"url": "about:blank"})
	b.order(&target, "Target.attachToTarget", map[string]any{"targetId": target.TargetID, "flatten": true})
	b.session = target.SessionID
	for _, domain := range []string{"Page", "Runtime", "Log"} {
		b.order(nil, domain+".enable", nil)
	}
	return b
}

// Open opens a page in a window of a width, and returns once it has loaded and run its scripts.
func (b *Tab) Open(url string, width int) {
	b.t.Helper()
	b.order(nil, "Emulation.setDeviceMetricsOverride", map[string]any{"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": false})
	b.Console = nil
	var opened struct{ ErrorText string }
	b.order(&opened, "Page.navigate", map[string]any{"url": url})
	require.Empty(b.t, opened.ErrorText, url)
	b.Until(`document.readyState === "complete"`)
}

// Eval returns what a JavaScript expression yields as text.
func (b *Tab) Eval(expression string) string {
	b.t.Helper()
	var reply struct {
		Result           struct{ Value string }
		ExceptionDetails json.RawMessage
	}
	b.order(&reply, "Runtime.evaluate", map[string]any{"expression": "String(" + expression + ")", "returnByValue": true})
	require.Empty(b.t, string(reply.ExceptionDetails), expression)
	return reply.Result.Value
}

// Until waits until a JavaScript expression yields true.
func (b *Tab) Until(expression string) {
	b.t.Helper()
	for deadline := time.Now().Add(browseTimeout); b.Eval(expression) != "true"; time.Sleep(20 * time.Millisecond) {
		require.True(b.t, time.Now().Before(deadline), "%s: never", expression)
	}
}

// order sends an order, and waits for its answer.
func (b *Tab) order(answer any, method string, params any) {
	b.t.Helper()
	b.id++
	text, err := json.Marshal(devtools{ID: b.id, Session: b.session, Method: method, Params: params})
	require.NoError(b.t, err)
	deadline := time.Now().Add(browseTimeout)
	require.NoError(b.t, errors.Join(b.orders.SetWriteDeadline(deadline), b.answers.SetReadDeadline(deadline)))
	_, err = b.orders.Write(append(text, 0))
	require.NoError(b.t, err)
	for {
		line, err := b.lines.ReadBytes(0)
		require.NoError(b.t, err, "chromium, %s", text)
		var m devtools
		require.NoError(b.t, json.Unmarshal(line[:len(line)-1], &m))
		switch {
		case m.Method == "Runtime.consoleAPICalled", m.Method == "Runtime.exceptionThrown", m.Method == "Log.entryAdded":
			b.Console = append(b.Console, string(line))
		case m.ID != b.id:
		default:
			require.Empty(b.t, string(m.Error), "%s", text)
			if answer != nil {
				require.NoError(b.t, json.Unmarshal(m.Result, answer))
			}
			return
		}
	}
}
