package plan_test

import (
	"fmt"
	"strings"
	"testing"

	shipped "github.com/loadgen/loadgen/internal/target/drivers"
	"github.com/loadgen/loadgen/pkg/plan"
	"github.com/stretchr/testify/require"
)

// A target of a driver without a transport needs no endpoints, and gets as many as its replication needs.
func TestImaginaryEndpoints(t *testing.T) {
	null := func(rest string) *plan.Target {
		return good(t, strings.Replace(small(""), `target "t" { driver = "null" }`, "target \"t\" {\n driver = \"null\"\n"+rest+"\n}", 1), plan.Vars{}).Targets[0]
	}
	require.Equal(t, []string{"null-0"}, null("").Endpoints)
	require.Equal(t, []string{"any", "name"}, null(`endpoints = ["any", "name"]`).Endpoints)
	src := strings.Replace(small(""), `target "t" { driver = "null" }`, "target \"t\" {\n driver = \"null\"\n replication {\n n = 3\n w = 1\n r = 1\n }\n}", 1)
	p := good(t, strings.Replace(src, "size = 10", "size = 30", 1), plan.Vars{})
	require.Equal(t, []string{"null-0", "null-1", "null-2"}, p.Targets[0].Endpoints)
}

// An endpoint in other clients' form may hold a password: the error says what to write, without showing the endpoint's text.
func TestEndpointsWithPasswordsAreNotShown(t *testing.T) {
	for endpoint, want := range map[string][]string{
		"redis rediss://:hunter2@cache:6379":         {`Write "HOST:PORT"`, `username = "USER" and password = secret("NAME")`, "tls {}"},
		"redis redis://worker:hunter2@cache:6379/3":  {`password = secret("NAME")`, "database = …"},
		"redis worker:hunter2@cache:6379":            {`password = secret("NAME")`},
		"redis :hunter2@cache:6379":                  {`password = secret("NAME")`},
		"redis rediss://:hunter2@":                   {`password = secret("NAME")`},
		"redis redis://cache:6379":                   {`Write "HOST:PORT".`},
		"postgres postgres://bob:hunter2@db:5432/it": {`user = "USER" and password = secret("NAME")`, "database = …"},
		"memcached bob:hunter2@cache:11211":          {`Write "HOST:PORT", without a user and a password, for which driver "memcached" has no words.`},
		"web http://bob:hunter2@shop:8080/base":      {`authorization = secret("NAME")`, "and no path: ops have them"},
		"web bob:hunter2@shop:8080":                  {`authorization = secret("NAME")`},
		"web https://shop:8080":                      {`Write "HOST:PORT", and tls {}.`},
		"web shop:8080/base?q=1":                     {`Write "HOST:PORT", and no path: ops have them.`},
	} {
		name, endpoint, _ := strings.Cut(endpoint, " ")
		said := saidOf(t, name, endpoint)
		require.Contains(t, said, "an endpoint that is a URL, or holds a user, a password or a path", endpoint)
		require.NotContains(t, said, "hunter2")
		for _, words := range want {
			require.Contains(t, said, words, endpoint)
		}
	}
}

// Drivers whose clients dial by themselves take the same endpoints as those whose connections are loadgen's.
func TestEndpointsOfEveryDriverThatConnects(t *testing.T) {
	for _, name := range []string{"redis", "memcached", "postgres", "web"} {
		for _, endpoint := range []string{"127.0.0.1", ":8080", "[::1]", "::1:8080", "127.0.0.1:021030", "127.0.0.1:0", "unix:/run/s", ""} {
			require.Contains(t, saidOf(t, name, endpoint), `Write "HOST:PORT", such as`, "%s %s", name, endpoint)
		}
	}
}

// saidOf returns what is said of a plan with an endpoint of a driver that loadgen has.
func saidOf(t *testing.T, driver, endpoint string) string {
	text := fmt.Sprintf("plan \"p\" {}\ntarget \"t\" {\n driver = %q\n endpoints = [%q, %q]\n}\n"+
		"dataset \"d\" {\n keys { count = 1 }\n values { size = 1 }\n}\nphase \"f\" {\n target = target.t\n dataset = dataset.d\n populate {}\n}\n", driver, endpoint, endpoint)
	file, diags := plan.Parse([]byte(text), "plan.hcl", shipped.All())
	if !diags.HasErrors() {
		_, more := file.Resolve(plan.Vars{})
		diags = append(diags, more...)
	}
	return formatted(t, diags, map[string][]byte{"plan.hcl": []byte(text)}) + diags.Error()
}
