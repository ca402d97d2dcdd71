package command_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/loadgen/loadgen/internal/result/run"
)

// heard counts requests by what a server was told.
type heard struct {
	mu    sync.Mutex
	count map[string]int
}

// ServeHTTP answers 404 to a DELETE, else 200. It does not count loadgen's question about what the server is.
func (h *heard) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if r.Method == http.MethodHead || err != nil {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.count[fmt.Sprintf("%s %s %s [%s %s] %q", r.Method, r.Host, r.RequestURI, strings.Join(r.Header.Values("X-Name"), ","), r.UserAgent(), body)]++
	if r.Method == http.MethodDelete {
		w.WriteHeader(http.StatusNotFound)
	}
}

// TestReplaysTargetsOfVegeta runs the plan from the docs that sends each request of a file once, with both of vegeta's formats, and compares with
// what a server received.
func TestReplaysTargetsOfVegeta(t *testing.T) {
	t.Parallel()
	plan := planFences(t, "web.md")["replay"]
	require.NotEmpty(t, plan)
	text := "GET http://HOST/a%20b?q=1\nX-Name: one\nX-Name: two\n\nPOST http://HOST/items\n@bodies/item\n\nDELETE http://HOST/items/7\nUser-Agent: me\n"
	object := `{"method":"GET","url":"http://HOST/a%20b?q=1","header":{"X-Name":["one","two"]}}
{"method":"POST","url":"http://HOST/items","body":"aXRlbQo="}
{"method":"DELETE","url":"http://HOST/items/7","header":{"User-Agent":["me"]}}
`
	for form, file := range map[string]string{"http": text, "json": object} {
		t.Run(form, func(t *testing.T) {
			h := &heard{count: map[string]int{}}
			server := httptest.NewServer(h)
			defer server.Close()
			host := server.Listener.Addr().String()
			dir := t.TempDir()
			require.NoError(t, os.MkdirAll(filepath.Join(dir, "shop", "bodies"), 0o755))
			require.NoError(t, os.WriteFile(filepath.Join(dir, "shop", "bodies", "item"), []byte("item\n"), 0o600))
			file = "\ufeff" + strings.ReplaceAll(file, "HOST", host)
			require.NoError(t, os.WriteFile(filepath.Join(dir, "shop", "targets.http"), []byte(file), 0o600))
			plan := strings.ReplaceAll(strings.ReplaceAll(plan, "127.0.0.1:8080", host), `"targets.http"`, `"shop/targets.http"`)
			r := begin(t, plan, "--files", dir).result(60 * time.Second)
			require.Equal(t, run.Complete, r.Verdict.Completeness, r.Verdict.Reasons)
			op := r.Phase["once"].Op["replay"]
			require.EqualValues(t, []uint64{3, 2, 1}, []uint64{op.Due, op.OK, op.Error})
			require.Equal(t, map[string]int{
				"GET " + host + ` /a%20b?q=1 [one,two loadgen] ""`: 1,
				"POST " + host + ` /items [ loadgen] "item\n"`:     1,
				"DELETE " + host + ` /items/7 [ me] ""`:            1,
			}, h.count)
		})
	}
}
