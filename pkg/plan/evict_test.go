package plan_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/loadgen/loadgen/pkg/plan"
)

// A built-in node of 64 MiB has no room for 10,000 values of 1 MiB. Once, nothing said so before gets missed.
func TestKeysThatBuiltinNodesEvict(t *testing.T) {
	for _, tt := range []struct {
		name, target, keys, values string
		evicts                     bool
	}{
		{"small values", "builtin {}", "count = 10000", `size = "200B"`, false},
		{"large values", "builtin {}", "count = 10000", `size = "1MiB"`, true},
		{"few of them", "builtin {}", "count = 63", `size = "1MiB"`, false},
		{"one too many", "builtin {}", "count = 64", `size = "1MiB"`, true},
		{"more memory", "builtin { memory = \"65MiB\" }", "count = 64", `size = "1MiB"`, false},
		{"more nodes", "builtin { nodes = 2 }", "count = 64", `size = "1MiB"`, false},
		{"copies", "builtin { nodes = 3 }\n replication {\n n = 3\n w = 1\n r = 1\n}", "count = 64", `size = "1MiB"`, true},
		{"of each session", "builtin {}", "count = 10\n scope = \"session\"", `size = "1MiB"`, true},
		{"a server of one's own", "endpoints = [\"127.0.0.1:6379\"]\n builtin {}", "count = 10000", `size = "1MiB"`, false},
		{"sizes that differ", "builtin {}", "count = 10000", `size = "uniform(1B, 1MiB)"`, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			load := "populate {}"
			if tt.name == "of each session" {
				load = "ops = { get = 1 }\n setup {\n ops = { put = 1 }\n}\n closed {\n sessions = 7\n iterations = 1\n}"
			}
			text := fmt.Sprintf("plan \"p\" {}\ntarget \"t\" {\n driver = \"redis\"\n %s\n}\ndataset \"d\" {\n keys {\n %s\n}\n values {\n %s\n}\n}\nphase \"f\" {\n target = target.t\n dataset = dataset.d\n %s\n}\n",
				tt.target, tt.keys, tt.values, load)
			file, diags := plan.Parse([]byte(text), "p.hcl", drivers())
			require.Empty(t, diags)
			p, diags := file.Resolve(plan.Vars{})
			require.Empty(t, diags)
			require.Equal(t, tt.evicts, p.Evicts(p.Phases[0]) != "", p.Evicts(p.Phases[0]))
			if tt.name == "large values" {
				require.Equal(t, "10000 keys with values of 1048576 bytes take 10001 MiB on built-in nodes, which have 64 MiB: they evict the others, and gets of these miss. "+
					"Give builtin more memory, or the dataset at most 63 keys", p.Evicts(p.Phases[0]))
			}
		})
	}
}
