package web

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/loadgen/loadgen/pkg/driver"
)

const nginxStatus = "Active connections: 291 \nserver accepts handled requests\n 16630948 16630946 31070465 \nReading: 6 Writing: 179 Waiting: 106 \n"

// apacheStatus is Apache's page, including names of several words and a scoreboard.
const apacheStatus = "localhost\nServerVersion: Apache/2.4.57 (Debian)\nTotal Accesses: 12\nTotal kBytes: 3\nCPUUser: .05\nReqPerSec: .0851064\nScoreboard: __W_.\n"

func page(status, headers, body string) []byte {
	return fmt.Appendf(nil, "HTTP/1.1 %s\r\nContent-Length: %d\r\n%s\r\n%s", status, len(body), headers, body)
}

func TestFigures(t *testing.T) {
	chunked := "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + fmt.Sprintf("%x\r\n%s\r\n0\r\n\r\n", len(nginxStatus), nginxStatus)
	nginx := map[string]string{
		"active_connections": "291", "accepts": "16630948", "handled": "16630946", "requests": "31070465", "reading": "6", "writing": "179", "waiting": "106",
	}
	for _, tt := range []struct {
		page []byte
		want map[string]string
	}{
		{page("200 OK", "Content-Type: text/plain\r\n", nginxStatus), nginx},
		{[]byte(chunked), nginx},
		{page("200 OK", "", apacheStatus), map[string]string{
			"serverversion": "Apache/2.4.57", "total_accesses": "12", "total_kbytes": "3", "cpuuser": ".05", "reqpersec": ".0851064", "scoreboard": "__W_.",
		}},
		{page("200 OK", "", ""), map[string]string{}},
		{page("200 OK", "", "server accepts handled requests\n1 2\nserver\n: x\nReading:\n"), map[string]string{"": "x"}},
	} {
		got, n, err := Driver{}.ParseFigures(append(bytes.Clone(tt.page), "HTTP/1.1 "...))
		require.NoError(t, err)
		require.Equal(t, len(tt.page), n)
		require.Equal(t, tt.want, got)
		for cut := range tt.page {
			_, n, err := Driver{}.ParseFigures(tt.page[:cut])
			require.NoError(t, err, "%q", tt.page[:cut])
			require.Zero(t, n, "%q", tt.page[:cut])
		}
	}
}

func TestFiguresAreRefused(t *testing.T) {
	for in, why := range map[string]string{
		string(page("404 Not Found", "", "")):           `the status page: the server says 404 Not Found: name its own with status = "/…" in the target`,
		string(page("401 Unauthorized", "", "")):        "the status page: the server says 401 Unauthorized",
		"HTTP/1.1 200 OK\r\n\r\nActive":                 "the status page: it does not say how long it is",
		"+OK\r\n":                                       "malformed HTTP",
		"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n": "bad Content-Length",
		string(page("200 OK", "", "")[:17]) + string(bytes.Repeat([]byte("A: b\r\n"), maxStatus/6+1)): "the status page has no end within 1 MiB",
	} {
		_, n, err := Driver{}.ParseFigures([]byte(in))
		require.ErrorContains(t, err, why, "%.60q", in)
		require.Zero(t, n)
	}
}

func TestQuestion(t *testing.T) {
	secrets := func(name string) (string, error) { return "Bearer " + name, nil }
	for _, tt := range []struct {
		config Config
		want   string
	}{
		{Config{MaxBody: 1}, "GET /stub_status HTTP/1.1\r\nHost: 127.0.0.1:8080\r\nUser-Agent: loadgen\r\n\r\n"},
		{
			Config{MaxBody: 1, Status: "/server-status?auto", Host: "shop", Authorization: &driver.Secret{Name: "TOKEN"}},
			"GET /server-status?auto HTTP/1.1\r\nHost: shop\r\nUser-Agent: loadgen\r\nAuthorization: Bearer TOKEN\r\n\r\n",
		},
	} {
		question, err := Driver{}.AppendQuestion(nil, driver.Link{Endpoint: "127.0.0.1:8080", Config: &tt.config, Secrets: secrets})
		require.NoError(t, err)
		require.Equal(t, tt.want, string(question))
	}
	for _, path := range []string{"status", "/a b", "/a\r\nX: y", "/ü"} {
		config := Driver{}.NewConfig().(*Config)
		config.Status = path
		require.ErrorContains(t, config.Validate(), "write the path of a page")
	}
	for _, f := range append(Driver{}.Figures(), apacheFigures[:]...) {
		require.Equal(t, f, Driver{}.Describe(f.Name))
	}
	require.Equal(t, driver.Figure{Name: "busyworkers"}, Driver{}.Describe("busyworkers"))
}

func FuzzParseFigures(f *testing.F) {
	f.Add(page("200 OK", "", nginxStatus))
	f.Add(page("200 OK", "", apacheStatus))
	f.Fuzz(func(t *testing.T, b []byte) {
		_, n, err := Driver{}.ParseFigures(b)
		require.LessOrEqual(t, n, len(b))
		require.False(t, err != nil && n > 0)
	})
}
