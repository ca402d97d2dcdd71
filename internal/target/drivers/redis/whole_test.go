package redis

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/loadgen/loadgen/pkg/driver"
)

// wholeForm is the form of requests of a trace.
func wholeForm(form string, selects bool) driver.Form {
	f := formOf(false, nil)
	f.Words = &Form{Request: Request{Form: form, Selects: selects}}
	return f
}

func TestRepliesToWholeRequests(t *testing.T) {
	for _, tt := range []struct {
		form    string
		selects bool
		replies string
		want    driver.Outcome
		message string
	}{
		{requests, false, "+OK\r\n", driver.OK, ""},
		{requests, false, "$-1\r\n", driver.Miss, ""},
		{requests, false, "*2\r\n$1\r\na\r\n*1\r\n:1\r\n", driver.OK, ""},
		{requests, true, "+OK\r\n$-1\r\n", driver.Miss, ""},
		{requests, true, "+OK\r\n-ERR no\r\n", driver.Error, "ERR no"},
		{requests, true, "-ERR DB index is out of range\r\n+OK\r\n", driver.Error, "ERR DB index is out of range"},
		{transactions, false, "+OK\r\n+QUEUED\r\n+QUEUED\r\n*2\r\n:1\r\n*1\r\n$1\r\na\r\n", driver.OK, ""},
		{transactions, true, "+OK\r\n+OK\r\n+QUEUED\r\n*1\r\n+OK\r\n", driver.OK, ""},
		{transactions, false, "+OK\r\n+QUEUED\r\n*-1\r\n", driver.Miss, ""},
		{transactions, false, "+OK\r\n+QUEUED\r\n*1\r\n-WRONGTYPE no\r\n", driver.Error, "WRONGTYPE no"},
		{transactions, false, "+OK\r\n-ERR unknown command\r\n-EXECABORT discarded\r\n", driver.Error, "ERR unknown command"},
		{transactions, false, "-ERR no MULTI\r\n:1\r\n-ERR EXEC without MULTI\r\n", driver.Error, "ERR no MULTI"},
	} {
		for _, protocol := range []int{2, 3} {
			c := codecOf(t, protocol, wholeForm(tt.form, tt.selects))
			verb := wholeForm(tt.form, tt.selects).Verb
			var reply driver.Reply
			for n := 1; n < len(tt.replies); n++ {
				got, err := c.Parse([]byte(tt.replies[:n]), verb, &reply)
				require.NoError(t, err, tt.replies[:n])
				require.Zero(t, got, "%q is not all", tt.replies[:n])
			}
			n, err := c.Parse([]byte(tt.replies+"+PONG\r\n"), verb, &reply)
			require.NoError(t, err)
			require.Equal(t, len(tt.replies), n, tt.replies)
			require.Equal(t, tt.want, reply.Outcome, tt.replies)
			require.Contains(t, string(reply.Message), tt.message)
		}
	}
}

func TestWholeRequestsGoOutAsTheyAre(t *testing.T) {
	f := wholeForm(requests, false)
	require.Equal(t, "x*1\r\n$4\r\nPING\r\n", string(codecOf(t, 2, f).AppendRequest([]byte("x"), &driver.Request{Verb: f.Verb, Key: []byte("*1\r\n$4\r\nPING\r\n")})))
	is, err := Driver{}.CheckForm(&Config{}, f)
	require.NoError(t, err)
	require.Equal(t, "REQUESTS", is.Command, "for a worker's policy")
	_, err = Driver{}.CheckForm(&Config{Cluster: true}, f)
	require.ErrorContains(t, err, "replay the trace of each node on a server that is not of a cluster")
	for want, r := range map[string]Request{
		"command beside form":  {Form: requests, Command: []string{"GET"}},
		`write "requests" or`:  {Form: "all"},
		"selects without form": {Selects: true},
		"script beside form":   {Form: requests, Script: "return 1"},
	} {
		_, err := Driver{}.CheckForm(&Config{}, driver.Form{Verb: f.Verb, Words: &Form{Request: r}})
		require.ErrorContains(t, err, want)
	}
}
