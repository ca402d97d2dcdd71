package plan_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	shipped "github.com/loadgen/loadgen/internal/target/drivers"
	"github.com/loadgen/loadgen/pkg/plan"
)

// TestPopulateOfClientsThatBlock opens no unwanted connections: with clients that block, each op in flight needs one.
func TestPopulateOfClientsThatBlock(t *testing.T) {
	for _, tt := range []struct {
		driver, walk string
		want         int
	}{
		{"web", "populate {}", 1},
		{"web", "clear {}", 1},
		{"web", "populate { pipeline = 3 }", 3},
		{"web", "clear { pipeline = 3 }", 3},
		{"redis", "populate {}", 16},
		{"redis", "clear {}", 16},
	} {
		text := fmt.Sprintf(`
plan "p" {}
target "t" {
	driver    = %q
	endpoints = ["127.0.0.1:1"]
}
dataset "d" {
	keys { count = 10 }
	values { size = 10 }
}
phase "walk" {
	target  = target.t
	dataset = dataset.d
	%s
}`, tt.driver, tt.walk)
		f, diags := plan.Parse([]byte(text), "plan.hcl", shipped.All())
		require.Empty(t, diags)
		p, diags := f.Resolve(plan.Vars{})
		require.Empty(t, diags)
		require.Equal(t, tt.want, p.Phases[0].Pipeline(), "%+v", tt)
	}
}
