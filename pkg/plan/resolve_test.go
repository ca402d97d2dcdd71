package plan_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/loadgen/loadgen/pkg/driver"
	"github.com/loadgen/loadgen/pkg/plan"
)

// caches is the top of a plan with a target and datasets of each kind.
const caches = `plan "p" {}
target "plain" {
  driver    = "redis"
  endpoints = ["a:1", "[::1]:65535"]
}
target "nodes" {
  driver = "redis"
  builtin {}
}
target "quorum" {
  driver  = "redis"
  timeout = "250ms"
  builtin { nodes = 3 }
  replication {
    n = 3
    w = 2
    r = 1
  }
}
dataset "shared" {
  keys { count = 1000 }
  values { size = "1KiB" }
}
dataset "other" {
  keys {
    count  = 10
    format = "o%%%04x"
    pick   = "zipf(1.2)"
  }
  values { size = 24 }
}
dataset "pool" {
  keys {
    count = 50
    scope = "session"
  }
  values { size = 24 }
}
dataset "once" {
  keys {
    count = 50
    pick  = "sequence"
  }
  values { size = 24 }
}
`

func phase(name, target, dataset, rest string) string {
	return "phase \"" + name + "\" {\n  target = target." + target + "\n  dataset = dataset." + dataset + "\n" + rest + "\n}\n"
}

const (
	gets    = "  ops = { get = 1 }\n  closed { iterations = 1 }"
	puts    = "  ops = { put = 1 }\n  closed { iterations = 1 }"
	deletes = "  ops = { get = 1, delete = 1 }\n  closed { iterations = 1 }"
)

func TestWhenSkipsAPhaseAndWhatOnlyItUses(t *testing.T) {
	src := strings.Replace(caches, `plan "p" {}`, "plan \"p\" {}\nvariable \"nodes\" { default = [] }", 1) +
		phase("x", "plain", "shared", gets) +
		phase("y", "quorum", "pool", "  when = length(var.nodes) > 0\n  ops = { get = var.nodes[0] }\n  closed { iterations = 1 }")
	p := good(t, src, plan.Vars{})
	require.Len(t, p.Phases, 1)
	require.Len(t, p.Targets, 1)
	require.Len(t, p.Datasets, 1)
	p = good(t, src, plan.Vars{Flags: []string{`nodes=[2]`}})
	require.InDelta(t, 2.0, p.Phases[1].Ops[0].Weight, 0)
}

// The largest plan within the bounds resolves, in time linear in its length.
func TestResolveIsLinear(t *testing.T) {
	large := func(n int) string {
		var b strings.Builder
		b.WriteString(caches)
		for i := range n {
			b.WriteString(phase("p"+strings.Repeat("x", i%40)+string(rune('a'+i/40%26))+string(rune('a'+i/40/26)), "plain", "shared",
				"  ops = { get = 1 }\n  closed {\n sessions = 4\n iterations = 10\n }"))
		}
		return b.String()
	}
	half, none := resolveAllocates(large(200))
	require.Empty(t, none)
	whole, none := resolveAllocates(large(400))
	require.Empty(t, none)
	t.Logf("%.1f MiB for %d bytes", float64(whole)/(1<<20), len(large(400)))
	require.LessOrEqual(t, float64(whole), 2.5*float64(half))
	require.LessOrEqual(t, whole, uint64(64<<20))
}

func TestDriverAttributes(t *testing.T) {
	src := caches + "target \"own\" {\n driver = \"redis\"\n endpoints = [\"a:1\"]\n password = secret(\"REDIS_PW\")\n database = 1 + 1\n" +
		" delay = \"5ms\"\n prefix = \"${local.p}-\"\n proxy { name = local.p }\n}\nlocals { p = \"x\" }\n" + phase("x", "own", "shared", gets)
	want := &fakeConfig{
		Password: &driver.Secret{Name: "REDIS_PW"}, Database: 2, Delay: 5 * time.Millisecond, Prefix: "x-", Proxy: &fakeProxy{Name: "x"},
	}
	require.Equal(t, want, good(t, src, plan.Vars{}).Targets[0].Config)
}

// No message shows what is written in place of a secret.
func TestSecretsStayOutOfMessages(t *testing.T) {
	for _, value := range []string{`"hunter2"`, `secret("hunter2")`, `{ secret = "hunter2" }`, `"hunter2" + 1`, `["hunter2"]`, `"${"hunter2"}"`, `{ hunter2 = 1 }`} {
		src := caches + "target \"own\" {\n driver = \"redis\"\n endpoints = [\"a:1\"]\n password = " + value + "\n}\n" + phase("x", "own", "shared", gets)
		_, diags := resolve(src, "plan.hcl", plan.Vars{})
		require.True(t, diags.HasErrors())
		require.NotContains(t, formatted(t, diags, map[string][]byte{"plan.hcl": []byte(src)}), "hunter2", value)
	}
}
