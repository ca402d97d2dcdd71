package plan_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	shipped "github.com/loadgen/loadgen/internal/target/drivers"
	"github.com/loadgen/loadgen/pkg/plan"
)

// serversPlan is a load of servers that copy by themselves.
const serversPlan = `plan "servers" {}
target "t" {
	driver = "hydra"
	builtin { nodes = 4 }
	replication {
		coordinate = "server"
		n = 2
		w = 1
		r = 1
	}
}
dataset "d" {
	keys { count = 1000 }
	values { size = 200 }
}
phase "p" {
	target = target.t
	dataset = dataset.d
	ops = { put = 1 }
	closed {
		sessions = 10
		iterations = 10
	}
}
`

func TestServersThatCopy(t *testing.T) {
	read := func(replace ...string) (*plan.Plan, string) {
		src := strings.NewReplacer(replace...).Replace(serversPlan)
		f, diags := plan.Parse([]byte(src), "plan.hcl", shipped.All())
		if diags.HasErrors() {
			return nil, diags.Error()
		}
		p, diags := f.Resolve(plan.Vars{})
		if diags.HasErrors() {
			return nil, diags.Error()
		}
		return p, ""
	}
	p, wrong := read()
	require.Empty(t, wrong)
	target := p.Target("t")
	require.Nil(t, target.Replication, "loadgen copies nothing")
	require.Equal(t, &plan.Copies{N: 2, W: 1, R: 1}, target.Copies)
	require.Equal(t, target.Copies, target.Builtin.Copies, "built-in nodes are what is expected")
	require.Equal(t, plan.ServersRing, target.Placement)
	require.Equal(t, 10*time.Second, target.Timeout)
	require.InDelta(t, 1.0, p.RequestsPerOp(p.Phases[0]), 0)

	const nodes, own = "builtin { nodes = 4 }", `endpoints = ["127.0.0.1:8080"]`
	for want, replace := range map[string][]string{
		"w = 3 with n = 2":             {"w = 1", "w = 3"},
		"r = 3 with n = 2":             {"r = 1", "r = 3"},
		"n = 17":                       {"n = 2", "n = 17"},
		"write IP:PORT":                {nodes, `endpoints = ["localhost:8080"]`},
		"below 32768":                  {nodes, `endpoints = ["127.0.0.1:40000"]`},
		"points = 3":                   {nodes, own + "\n\tpoints = 3"},
		"4194304 at most":              {"count = 1000", "count = 500000"},
		`"server": these servers copy`: {`"server"`, `"client"`},
		"nodes with n = 3, w = 1, r = 1, where replication expects":     {nodes, "builtin {\n\t\tnodes = 4\n\t\tn = 3\n\t}"},
		`Use coordinate = "client"`:                                     {`"hydra"`, `"redis"`},
		"read_fanout":                                                   {"r = 1", "r = 1\n\t\tread_fanout = \"r\""},
		`build = "2010"; Write "2009-04-03" or "2009-04-08" or "2011".`: {nodes, "builtin {\n\t\tnodes = 4\n\t\tbuild = \"2010\"\n\t}"},
		`wait = "0s"`: {nodes, "builtin {\n\t\tnodes = 4\n\t\twait = \"0s\"\n\t}"},
	} {
		_, wrong := read(replace...)
		require.Contains(t, wrong, want)
	}
}
