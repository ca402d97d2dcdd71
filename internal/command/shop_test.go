package command_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/loadgen/loadgen/internal/base/exit"
	"github.com/loadgen/loadgen/internal/result/run"
	"github.com/loadgen/loadgen/internal/servertest"
)

// shop is a service whose answers are known: each 50th order that it is asked for is a status of 200 with an error in it.
type shop struct {
	mu      sync.Mutex
	logins  map[string]int
	notes   map[string]bool   // of orders
	orders  map[string]string // id to user
	asked   int
	foreign int // requests for another user's order
}

func newShop(t *testing.T) (*shop, string) {
	s := &shop{logins: map[string]int{}, notes: map[string]bool{}, orders: map[string]string{}}
	server := httptest.NewServer(s)
	t.Cleanup(server.Close)
	return s, server.Listener.Addr().String()
}

// ServeHTTP takes the tokens that it has given.
func (s *shop) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var in struct{ User, Password, Note string }
	_ = json.NewDecoder(r.Body).Decode(&in) // what is missing is empty
	user, known := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer t-")
	id, ofOrder := strings.CutPrefix(r.URL.Path, "/orders/")
	say := func(status int, format string, args ...any) {
		w.WriteHeader(status)
		_, _ = fmt.Fprintf(w, format, args...) // the client may have gone
	}
	switch owner, there := s.orders[id]; {
	case r.URL.Path == "/login" && in.Password == "pw-"+in.User:
		s.logins[in.User]++
		http.SetCookie(w, &http.Cookie{Name: "sid", Value: in.User, Path: "/"})
		say(200, `{"token":"t-%s"}`, in.User)
	case !known || r.URL.Path != "/login" && cookie(r) != user:
		say(401, `{"error":"who?"}`)
	case r.URL.Path == "/orders":
		if s.asked++; s.asked%50 == 0 {
			say(200, `{"error":"oops"}`)
			return
		}
		id := strconv.Itoa(s.asked)
		s.orders[id], s.notes[in.Note] = user, true
		w.Header().Set("Location", "/orders/"+id)
		say(201, `{"id":%q,"state":"draft","user":%q,"items":[{"sku":"a"}]}`, id, user)
	case ofOrder && there && owner != user:
		s.foreign++
		say(403, `{"error":"not yours"}`)
	case ofOrder && there && r.Method == http.MethodDelete:
		delete(s.orders, id)
		w.WriteHeader(204)
	case ofOrder && there:
		say(200, `{"id":%q,"user":%q}`, id, user)
	default:
		say(404, `{"error":"gone"}`)
	}
}

// cookie returns the user whom the cookie names.
func cookie(r *http.Request) string {
	if c, err := r.Cookie("sid"); err == nil {
		return c.Value
	}
	return ""
}

// TestOrdersOfAShop runs plans/shop.hcl on a service behind nginx with TLS: each session logs in once, each order is made, read and cancelled by who
// made it, and each reply with an error in it is found by name, whatever its status says; with HTTP/1.1, then with HTTP/2.
func TestOrdersOfAShop(t *testing.T) {
	t.Parallel()
	a := servertest.NewAuthority(t)
	shows := a.Issue("127.0.0.1", time.Hour)
	s, behind := newShop(t)
	proxy := servertest.Proxy(t, behind, &shows)
	plan, err := os.ReadFile(filepath.Join("..", "..", "plans", "shop.hcl"))
	require.NoError(t, err)
	users, err := os.ReadFile(filepath.Join("..", "..", "plans", "users.csv"))
	require.NoError(t, err)
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "users.csv"), users, 0o600))
	begin := func(args ...string) *load {
		path := filepath.Join(dir, "shop.hcl")
		require.NoError(t, os.WriteFile(path, plan, 0o600))
		return beginFile(t, path, append(args, "-var", "endpoint="+proxy.Addr, "-var", "ca="+a.CA)...)
	}
	for i, most := range []string{"1%", "5%"} {
		if i == 1 {
			plan = []byte(strings.Replace(string(plan), `driver    = "web"`, `driver = "http2"`, 1))
		}
		r := begin("-var", "max_bad="+most).whole()
		require.Equal(t, run.Fail, r.Verdict.Assertions)
		if i == 0 {
			require.Equal(t, exit.Invalid, r.ExitCode)
		} else if !starved(r) {
			require.Equal(t, exit.Assert, r.ExitCode)
		}
		create := r.Phase["day"].Op["create"]
		require.EqualValues(t, []uint64{3200, 3136, 64}, []uint64{create.Due, create.OK, create.Error})
		require.Equal(t, map[string]run.Check{"json $.state": {Failed: 64}, "json $.user": {}, "header Location": {}, "json $.error": {}}, create.Checks)
		require.Equal(t, []run.ErrorText{{Text: "create: json $.state is missing, not “draft”", Count: 64}}, r.Phase["day"].Errors)
		require.EqualValues(t, 3136, r.Phase["day"].Op["cancel"].OK)
		require.EqualValues(t, 8, r.Phase["day"].Setup.Op["login"].OK)
		require.Empty(t, s.orders)
		require.Zero(t, s.foreign)
		require.Len(t, s.logins, 8)
		require.Equal(t, i+1, s.logins["bob"])
		require.True(t, s.notes[`for Bob "the \ builder", Jr.`] && s.notes["for Zoë"], s.notes)
	}
	plan = []byte(strings.ReplaceAll(string(plan), "sessions   = 8", "sessions = 9"))
	begin().told("9 sessions, and users.csv has 8 rows")
}
