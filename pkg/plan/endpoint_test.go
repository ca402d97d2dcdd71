package plan_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/loadgen/loadgen/pkg/plan"
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
		"rediss://:hunter2@cache:6379":        {`Write "HOST:PORT"`, `password = secret("NAME")`, "tls {}"},
		"redis://worker:hunter2@cache:6379/3": {`password = secret("NAME")`, "database = N"},
		"worker:hunter2@cache:6379":           {`password = secret("NAME")`},
		":hunter2@cache:6379":                 {`password = secret("NAME")`},
		"rediss://:hunter2@":                  {`password = secret("NAME")`},
		"redis://cache:6379":                  {`Write "HOST:PORT".`},
	} {
		text := fmt.Sprintf("plan \"p\" {}\ntarget \"t\" {\n driver = \"redis\"\n endpoints = [%q, %q]\n}\n"+
			"dataset \"d\" {\n keys { count = 1 }\n values { size = 1 }\n}\nphase \"f\" {\n target = target.t\n dataset = dataset.d\n populate {}\n}\n", endpoint, endpoint)
		file, diags := plan.Parse([]byte(text), "plan.hcl", drivers())
		if !diags.HasErrors() {
			_, more := file.Resolve(plan.Vars{})
			diags = append(diags, more...)
		}
		var shown strings.Builder
		require.NoError(t, plan.FormatDiagnostics(&shown, diags, map[string][]byte{"plan.hcl": []byte(text)}))
		said := shown.String() + diags.Error()
		require.Contains(t, said, "an endpoint that is a URL, or holds a user or a password", endpoint)
		require.NotContains(t, said, "hunter2")
		for _, words := range want {
			require.Contains(t, said, words, endpoint)
		}
	}
}
