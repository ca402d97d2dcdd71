package web

import (
	"compress/gzip"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/loadgen/loadgen/pkg/driver"
	"github.com/loadgen/loadgen/pkg/driver/form"
)

// answers serves pages whose content tests look at.
func answers(t *testing.T) (addr string, heard func() string) {
	last := ""
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		last = fmt.Sprintf("%s %s %s %s %s", r.Method, r.RequestURI, r.Header.Get("Cookie"), r.Header.Get("Authorization"), body)
		switch r.URL.Path {
		case "/order":
			w.Header().Set("Location", "/orders/7")
			w.Header().Set("X-Long", strings.Repeat("x", 8<<10+1))
			http.SetCookie(w, &http.Cookie{Name: "sid", Value: "s-1", Path: "/"})
			http.SetCookie(w, &http.Cookie{Name: "old", Value: "x", MaxAge: -1})
			_, _ = io.WriteString(w, ` {"id":"7","n":1.0,"on":true,"off":null,"a.b":"dot","list":[{"v":"one"},"two"],"token":"hush","crlf":"a\r\nX-Evil: 1","empty":""}`)
		case "/broken":
			_, _ = io.WriteString(w, "<html>no</html>")
		case "/none":
		case "/gzip":
			w.Header().Set("Content-Encoding", "gzip")
			z := gzip.NewWriter(w)
			_, _ = io.WriteString(z, `{"state":"packed"}`)
			_ = z.Close()
		case "/bomb":
			w.Header().Set("Content-Encoding", "gzip")
			z := gzip.NewWriter(w)
			_, _ = z.Write(make([]byte, 8<<20))
			_ = z.Close()
		case "/big":
			_, _ = w.Write(make([]byte, mostLooked+1))
		case "/to":
			http.Redirect(w, r, "/there", http.StatusFound)
		case "/kept":
			http.Redirect(w, r, "/there", http.StatusTemporaryRedirect)
		case "/away":
			http.Redirect(w, r, "http://other.example/", http.StatusFound)
		case "/loop":
			http.Redirect(w, r, "/loop", http.StatusFound)
		}
	}))
	t.Cleanup(server.Close)
	return server.Listener.Addr().String(), func() string { return last }
}

// asked is a session that carries out one form with a bag.
func asked(t *testing.T, addr string, words *Form, bag driver.Bag) (driver.Reply, error) {
	t.Helper()
	verb := driver.Verb(7) // the first of a plan's own
	s := open(t, addr, &Config{MaxBody: 64 << 20, Cookies: true}, driver.Form{Verb: verb, Name: "ask", Words: words})
	return do(t, s, &driver.Request{Verb: verb, Key: []byte("k"), Bag: &bag, Target: 1})
}

// TestChecksOfReplies has each kind of check find what it should, and say what it found instead.
func TestChecksOfReplies(t *testing.T) {
	addr, _ := answers(t)
	bag := driver.Bag{{Name: "captured.id", Text: "7"}, {Name: "row.user", Text: "hush"}}
	for _, c := range []struct {
		path   string
		expect Expect
		says   string // "" if the reply is ok
	}{
		{"/order", Expect{Equal: map[string]string{
			"json $.id": "{captured.id}", "json $.n": "1.0", "json $.on": "true", `json $["a.b"]`: "dot", "json $.list[0].v": "one", "json $.list[-1]": "two",
			"header Location": "/orders/7", "cookie sid": "s-1", `body "id":"(.)"`: "7", "json $.empty": "",
		}, Match: map[string]string{"body": `^ \{`, "json $.id": "^[0-9]$"}, Absent: []string{"json $.error", "json $.off", "header X-No", "cookie none", "body nothing", "json $.list[2]"}}, ""},
		{"/order", Expect{Equal: map[string]string{"json $.n": "1"}}, "ask: json $.n is the number “1.0”, not “1”"},
		{"/order", Expect{Equal: map[string]string{"json $.on": "yes"}}, "ask: json $.on is the bool “true”, not “yes”"},
		{"/order", Expect{Equal: map[string]string{"json $.off": "x"}}, "ask: json $.off is missing: it is null, not “x”"},
		{"/order", Expect{Equal: map[string]string{"json $.state": "draft"}}, "ask: json $.state is missing, not “draft”"},
		{"/order", Expect{Equal: map[string]string{"json $.list": "x"}}, "ask: json $.list is a list, not “x”"},
		{"/order", Expect{Match: map[string]string{"json $.list[0]": "x*"}}, `ask: json $.list[0] is an object, which does not match "x*"`},
		{"/order", Expect{Equal: map[string]string{"json $.list.v": "one"}}, "ask: json $.list.v is missing, not “one”"},
		{"/order", Expect{Equal: map[string]string{"json $.token": "{captured.id}"}}, "ask: json $.token is “…”, not “{captured.id}”"},
		{"/order", Expect{Absent: []string{"json $.id"}}, "ask: json $.id is there: “…”"},
		{"/order", Expect{Match: map[string]string{"header Location": "^/x"}}, `ask: header Location is “/orders/…”, which does not match "^/x"`},
		{"/broken", Expect{Equal: map[string]string{"json $.id": "7"}}, "ask: json $.id is missing: the body is not JSON, not “7”"},
		{"/none", Expect{Equal: map[string]string{"json $.id": "7"}}, "ask: json $.id is missing: the body is empty, not “7”"},
		{"/gzip", Expect{Equal: map[string]string{"json $.state": "packed"}}, ""},
		{"/bomb", Expect{Match: map[string]string{"body": "."}}, "ask: a body of more than 1 MiB, too long to be looked at"},
	} {
		e := c.expect
		reply, err := asked(t, addr, &Form{Request: Request{Method: "GET", Path: c.path}, Expect: &e}, bag)
		require.NoError(t, err)
		require.Equal(t, c.says, string(reply.Message))
		require.Equal(t, c.says == "", reply.Outcome == driver.OK)
		require.Equal(t, c.says != "" && c.path != "/bomb", reply.Found != nil && reply.Found.Failed == 1)
	}
	_, err := asked(t, addr, &Form{Request: Request{Method: "GET", Path: "/big"}, Expect: &Expect{Match: map[string]string{"body": "."}}}, nil)
	require.ErrorIs(t, err, errTooLong)
}

// TestCaptures keeps what replies say, and cookies but those that are over.
func TestCaptures(t *testing.T) {
	addr, heard := answers(t)
	words := func(selector string) *Form {
		return &Form{Request: Request{Method: "GET", Path: "/order"}, Capture: map[string]string{"it": selector}}
	}
	reply, err := asked(t, addr, words("json $.crlf"), driver.Bag{{Name: "cookie.sid", Target: 1, Text: "s-0"}, {Name: "cookie.sid", Target: 2, Text: "another's"}})
	require.NoError(t, err)
	require.Equal(t, driver.OK, reply.Outcome, string(reply.Message))
	require.Equal(t, driver.Bag{{Name: "cookie.sid", Target: 1, Text: "s-1"}, {Name: "cookie.old", Target: 1}, {Name: "captured.it", Text: "a\r\nX-Evil: 1"}}, reply.Found.Bag)
	require.Equal(t, "GET /order sid=s-0  ", heard())
	for selector, says := range map[string]string{
		"json $.nothing": "is missing", "json $.empty": "is empty", "json $.list": "is a list", "body [^x]*": "", "header X-No": "is missing", "header X-Long": "is longer than 8 KiB",
	} {
		reply, err := asked(t, addr, words(selector), nil)
		require.NoError(t, err)
		require.Equal(t, says == "", reply.Outcome == driver.OK)
		require.Contains(t, string(reply.Message), says)
	}
	reply, err = asked(t, addr, &Form{Request: Request{Method: "GET", Path: "/order"}, Capture: map[string]string{"it": "json $.id"}, Expect: &Expect{Equal: map[string]string{"json $.token": "x"}}}, nil)
	require.NoError(t, err)
	require.Equal(t, "ask: json $.token is “…”, not “x”", string(reply.Message), "nothing is quoted of a reply with captures in it")
}

// TestRequestsOfScenarios sends what scenarios remember, escaped as its place wants it.
func TestRequestsOfScenarios(t *testing.T) {
	addr, heard := answers(t)
	bag := driver.Bag{{Name: "captured.x", Text: "a\"b\r\n&c d"}, {Name: "captured.next", Text: "/there?q=1&r=%20"}, {Name: "captured.url", Text: "//other/"}}
	for _, c := range []struct {
		request Request
		heard   string // or the message of an error
	}{
		{Request{Method: "POST", Path: "/p/{captured.x}", JSON: `{"a":["{captured.x}"],"n":2,"{{":"{{}}"}`}, `POST /p/a%22b%0D%0A%26c%20d   {"a":["a\"b\u000d\u000a&c d"],"n":2,"{":"{}"}`},
		{Request{Method: "POST", Path: "/p", Fields: map[string]string{"b c": "{captured.x}", "a": "1&2"}}, "POST /p   a=1%262&b+c=a%22b%0D%0A%26c%20d"},
		{Request{Method: "GET", Path: "{captured.next}", Basic: "u:{captured.x}"}, "GET /there?q=1&r=%20  Basic dTphImINCiZjIGQ= "},
		{Request{Method: "GET", Path: "{captured.url}"}, "ask: what {captured.url} stands for cannot be a path: capture one that begins with one /, without spaces"},
		{Request{Method: "POST", Path: "/to", Body: "x", Follow: 1}, "GET /there   "},
		{Request{Method: "POST", Path: "/kept", Body: "x", Follow: 1}, "POST /there   x"},
		{Request{Method: "GET", Path: "/loop", Follow: 3}, "ask: more than follow = 3 redirects, the last to /loop"},
		{Request{Method: "GET", Path: "/away", Follow: 3}, "ask: a redirect from http://" + addr + " to another origin, which is not followed: http://other.example/"},
		{Request{Method: "GET", Path: "/p", Headers: map[string]string{"Authorization": "Bearer {secret.TOKEN}"}}, "GET /p  Bearer Bearer abc "},
	} {
		reply, err := asked(t, addr, &Form{Request: c.request}, bag)
		require.NoError(t, err)
		if says := string(reply.Message); says != "" {
			require.Equal(t, c.heard, says)
			continue
		}
		require.Equal(t, c.heard, heard())
		require.Equal(t, c.request.Follow, reply.Found.Hops)
	}
	parts := []Part{{Name: "file", File: &form.File{Path: "dir/me.png", Type: "image/png", Data: "AP8="}}, {Name: "alt", Text: "{captured.x}"}}
	reply, err := asked(t, addr, &Form{Request: Request{Method: "POST", Path: "/p", Parts: parts}}, bag)
	require.NoError(t, err)
	require.Equal(t, driver.OK, reply.Outcome)
	require.Contains(t, heard(), "form-data; name=\"file\"; filename=\"me.png\"\r\nContent-Type: image/png\r\n\r\n\x00\xff\r\n--")
	require.Contains(t, heard(), "name=\"alt\"\r\n\r\na\"b\r\n&c d\r\n--")
}

// TestMistakesInForms names the place and the remedy.
func TestMistakesInForms(t *testing.T) {
	get := Request{Method: "GET", Path: "/"}
	post := func(change func(*Request)) Form {
		r := Request{Method: "POST", Path: "/"}
		change(&r)
		return Form{Request: r}
	}
	for says, f := range map[string]Form{
		`equal has "jsn $.a": write "json $.a.b"`:                       {Request: get, Expect: &Expect{Equal: map[string]string{"jsn $.a": ""}}},
		`absent has "json $.a[*]": write names and indexes`:             {Request: get, Expect: &Expect{Absent: []string{"json $.a[*]"}}},
		`absent has "json a": write names`:                              {Request: get, Expect: &Expect{Absent: []string{"json a"}}},
		`match of "body": error parsing regexp`:                         {Request: get, Expect: &Expect{Match: map[string]string{"body": "("}}},
		`equal = "{captured.}": unknown placeholder {captured.}`:        {Request: get, Expect: &Expect{Equal: map[string]string{"body": "{captured.}"}}},
		`capture has the name "a b": write a letter`:                    {Request: get, Capture: map[string]string{"a b": "body"}},
		`capture a = "reply": write "json $.a.b"`:                       {Request: get, Capture: map[string]string{"a": "reply"}},
		`request has several of body, json, fields and part: write one`: post(func(r *Request) { r.Body, r.JSON = "x", "{}" }),
		`part "a": write part "NAME"`:                                   post(func(r *Request) { r.Parts = []Part{{Name: "a"}} }),
		`basic = "u": write USER:PASSWORD`:                              post(func(r *Request) { r.Basic = "u" }),
		`follow = 21: write how many`:                                   post(func(r *Request) { r.Follow = 21 }),
		`json has unknown placeholder {x} at character 1`:               post(func(r *Request) { r.JSON = `["{x}"]` }),
		`path = "{captured.a}b": write a path that begins with /`:       post(func(r *Request) { r.Path = "{captured.a}b" }),
		`expect has 33 checks: write at most 32`:                        {Request: get, Expect: &Expect{Absent: strings.Split("body "+strings.Join(strings.Split("ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456", ""), ",body "), ",")}},
	} {
		_, err := Driver{}.CheckForm(&Config{}, driver.Form{Verb: 7, Name: "ask", Words: &f})
		require.ErrorContains(t, err, says)
	}
}
