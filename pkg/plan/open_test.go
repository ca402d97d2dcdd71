package plan_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/loadgen/loadgen/pkg/plan"
)

func TestStreamsOfAnOpenLoad(t *testing.T) {
	cases := map[string]int{"1": 1024, "3": 1026, "16": 1024, "1000": 2000, "1024": 1024, "1025": 1025, "1000000": 1000000}
	for sessions, want := range cases {
		p := good(t, caches+phase("x", "plain", "shared", "  ops = { get = 1 }\n  open {\n rate = 1\n duration = 1\n sessions = "+sessions+"\n }"), plan.Vars{})
		require.Equal(t, want, p.Phases[0].Open.Streams)
	}
}
