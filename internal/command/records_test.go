package command_test

import (
	"net/url"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/loadgen/loadgen/internal/result/run"
	"github.com/loadgen/loadgen/internal/servertest"
)

// TestLoadsThroughACache: the asserts of aldica.hcl hold where the first load is cold and the second warm, and fail where the cache has lost some of
// what the first load filled it with.
func TestLoadsThroughACache(t *testing.T) {
	t.Parallel()
	u, err := url.Parse(servertest.Postgres(t))
	require.NoError(t, err)
	for _, c := range []struct {
		options []string
		asserts run.Assertions
	}{
		{nil, run.Pass},
		{[]string{"--maxmemory", "2mb", "--maxmemory-policy", "allkeys-random"}, run.Fail},
	} {
		r := beginExample(t, "aldica.hcl", "--variant", "json", "--repetition", "1", "-var", "scale=0.25", "-var", "endpoints="+u.Host,
			"-var", "redis="+servertest.Redis(t, c.options...)).whole()
		require.Equal(t, c.asserts, r.Verdict.Assertions, r.Verdict.Reasons)
		first, second := r.Phase["first"].Cache, r.Phase["second"].Cache
		require.EqualValues(t, 6000, first.Loads)
		require.Equal(t, c.asserts == run.Pass, second.Loads == 0)
	}
}
