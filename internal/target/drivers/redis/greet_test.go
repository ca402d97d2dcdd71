package redis

import (
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/loadgen/loadgen/pkg/driver"
)

const testPassword = "correct horse\r\n\"battery"

func TestGreet(t *testing.T) {
	secret := &driver.Secret{Name: "cache"}
	auth := "$23\r\n" + testPassword + "\r\n"
	tests := []struct {
		name    string
		cfg     Config
		want    string
		replies int
	}{
		{"nothing", Config{Protocol: 2}, "*1\r\n$4\r\nPING\r\n", 1},
		{"password", Config{Protocol: 2, Password: secret}, "*2\r\n$4\r\nAUTH\r\n" + auth + "*1\r\n$4\r\nPING\r\n", 2},
		{"user", Config{Protocol: 2, Username: "u", Password: secret}, "*3\r\n$4\r\nAUTH\r\n$1\r\nu\r\n" + auth + "*1\r\n$4\r\nPING\r\n", 2},
		{"database", Config{Protocol: 2, Database: 12}, "*2\r\n$6\r\nSELECT\r\n$2\r\n12\r\n*1\r\n$4\r\nPING\r\n", 2},
		{"all", Config{Protocol: 2, Username: "u", Password: secret, Database: 1}, "*3\r\n$4\r\nAUTH\r\n$1\r\nu\r\n" + auth +
			"*2\r\n$6\r\nSELECT\r\n$1\r\n1\r\n*1\r\n$4\r\nPING\r\n", 3},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			b, n := newTestCodec(t, test.cfg).Greet(nil)
			require.Equal(t, test.want, string(b))
			require.Equal(t, test.replies, n)
		})
	}
}

func TestParseGreeting(t *testing.T) {
	all := Config{Protocol: 2, Username: "worker", Password: &driver.Secret{Name: "cache"}, Database: 3}
	const withheld = "(words withheld: they could hold the password)"
	tests := []struct {
		name string
		step int
		in   string
		want string
	}{
		{
			"wrong password", 0, "-WRONGPASS invalid username-password pair or user is disabled.\r\n",
			"AUTH worker: server says WRONGPASS invalid username-password pair or user is disabled.",
		},
		{"protected mode", 0, "-DENIED Redis is running in protected mode\r\n", "AUTH worker: server says DENIED Redis is running in protected mode"},
		{"no such database", 1, "-ERR DB index is out of range\r\n", "SELECT 3: server says ERR DB index is out of range"},
		{"no password given", 2, "-NOAUTH Authentication required.\r\n", `PING: server says NOAUTH Authentication required. (write password = secret("NAME") in the target)`},
		{"loading", 2, "-LOADING Redis is loading the dataset in memory\r\n", "PING: server says LOADING Redis is loading the dataset in memory"},
		{"replica without master", 2, "-MASTERDOWN Link with MASTER is down\r\n", "PING: server says MASTERDOWN Link with MASTER is down"},
		{"control characters", 2, "-ERR \x1b[2J\"x\"\t\xff\r\n", `PING: server says ERR \x1b[2J"x"\t\xff`},
		{"long error", 2, "-" + strings.Repeat("x", 1000) + "\r\n", "PING: server says " + strings.Repeat("x", 300)},
		{"another status", 2, "+OK\r\n", `PING: want +PONG, got "+OK\r\n"`},
		{"another bulk", 2, "$4\r\nPANG\r\n", `PING: want +PONG, got "$4\r\nPANG\r\n"`},
		{"array", 2, "*2\r\n$4\r\npong\r\n$0\r\n\r\n", `PING: want +PONG, got "*2\r\n"`},
		{"web server", 0, "HTTP/1.1 400 Bad Request\r\nServer: nginx/1.24.0\r\n\r\n", `AUTH worker: not RESP2: got "HTTP/1.1 400 Bad Request\r\nServer: nginx/"…`},
		{"mail server", 2, "220 mail ESMTP\r\n", `PING: not RESP2: got "220 mail ESMTP\r\n"`},
		{"arguments repeated", 0, "-ERR unknown command 'AUTH', with args beginning with: 'worker' 'correct horse  \"battery'\r\n", "AUTH worker: server says ERR " + withheld},
		{"arguments cut", 0, "-ERR unknown command 'AUTH', with args beginning with: 'worker' 'corr\r\n", "AUTH worker: server says ERR " + withheld},
		{"echo as a line", 0, "+" + "correct horse" + "\r\n", "AUTH worker: want +OK, got " + withheld},
		{"echo as a bulk", 0, "$23\r\n" + testPassword + "\r\n", "AUTH worker: want +OK, got " + withheld},
		{"echo of the end", 0, "\"battery\r\n", "AUTH worker: " + withheld},
	}
	c := newTestCodec(t, all)
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			n, err := c.ParseGreeting([]byte(test.in), test.step)
			require.EqualError(t, err, test.want)
			require.Zero(t, n)
		})
	}
	for _, in := range []string{"$4\r\nPONG\r\n", "-NOPERM this user has no permissions to run the 'ping' command\r\n", "-ERR unknown command 'PING'\r\n"} {
		n, err := c.ParseGreeting([]byte(in+"+more"), 2)
		require.NoError(t, err, "a server may answer PING by %q", in)
		require.Equal(t, len(in), n)
	}
	for i, in := range []string{"+OK\r\n", "+OK\r\n", "+PONG\r\n"} {
		n, err := c.ParseGreeting([]byte(in+"+more"), i)
		require.NoError(t, err)
		require.Equal(t, len(in), n)
	}
}

func TestConfigValidate(t *testing.T) {
	require.NoError(t, Driver{}.NewConfig().(*Config).Validate())
	require.ErrorContains(t, (&Config{Protocol: 2, Username: "u"}).Validate(), `username is set without password: write password = secret("NAME")`)
	require.ErrorContains(t, (&Config{Protocol: 2, Database: -1}).Validate(), "database = -1: write a number from 0")
	err := (&Config{Protocol: 2, Username: "u", Database: -1}).Validate()
	require.ErrorContains(t, err, "username")
	require.ErrorContains(t, err, "database")
}

func TestNewCodecErrors(t *testing.T) {
	missing := errors.New("LOADGEN_SECRET_CACHE is not set")
	_, err := Driver{}.NewCodec(driver.Link{Config: &Config{Protocol: 2, Password: &driver.Secret{Name: "cache"}}, Secrets: func(string) (string, error) { return "", missing }})
	require.ErrorIs(t, err, missing)
	_, err = Driver{}.NewCodec(driver.Link{Config: "text"})
	require.ErrorContains(t, err, "config is a string")
	_, err = Driver{}.NewCodec(driver.Link{Config: &Config{Protocol: 2, Database: -1}})
	require.ErrorContains(t, err, "database = -1")
}

// FuzzParseGreeting also looks for ways in which a server could get the password into an error.
func FuzzParseGreeting(f *testing.F) {
	f.Add([]byte("+OK\r\n"), uint8(0))
	f.Add([]byte("-ERR unknown command 'AUTH', with args beginning with: 'correct horse"), uint8(0))
	f.Add([]byte("*2\r\n$4\r\nAUTH\r\n$23\r\n"+testPassword), uint8(1))
	f.Add([]byte("-\"battery\r\n"), uint8(2))
	c := newTestCodec(f, Config{Protocol: 2, Password: &driver.Secret{Name: "cache"}, Database: 1})
	f.Fuzz(func(t *testing.T, b []byte, step uint8) {
		n, err := c.ParseGreeting(b, int(step)%3)
		require.LessOrEqual(t, n, len(b))
		if err == nil {
			return
		}
		require.Zero(t, n)
		for _, part := range []string{"corr", "hors", "batt"} {
			require.NotContains(t, err.Error(), part)
		}
	})
}
