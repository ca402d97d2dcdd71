package servertest_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/loadgen/loadgen/internal/servertest"
)

// recorder is a test that only notes how it would end.
type recorder struct {
	testing.TB
	skipped, failed bool
}

func (r *recorder) Helper()               {}
func (r *recorder) Skipf(string, ...any)  { r.skipped = true }
func (r *recorder) Fatalf(string, ...any) { r.failed = true }

func TestMissingPartsAreSkippedOrRequired(t *testing.T) {
	missing := errors.New("gopherd not found")
	for _, test := range []struct {
		require         string
		err             error
		skipped, failed bool
		noted           string
	}{
		{require: "", err: missing, skipped: true, noted: "gopher: missing: gopherd not found\n"},
		{require: "redis", err: missing, skipped: true, noted: "gopher: missing: gopherd not found\n"},
		{require: "all", err: missing, failed: true, noted: "gopher: missing: gopherd not found\n"},
		{require: "redis,gopher", err: missing, failed: true, noted: "gopher: missing: gopherd not found\n"},
		{require: "all", err: nil, noted: "gopher: found\n"},
	} {
		t.Run(test.require, func(t *testing.T) {
			parts := filepath.Join(t.TempDir(), "parts")
			t.Setenv(servertest.PartsVariable, parts)
			t.Setenv(servertest.RequireVariable, test.require)
			r := &recorder{TB: t}
			servertest.Require(r, "gopher", test.err)
			if r.failed {
				r.skipped = false // Fatalf would not have returned
			}
			require.Equal(t, test.failed, r.failed)
			require.Equal(t, test.skipped, r.skipped)
			noted, err := os.ReadFile(parts)
			require.NoError(t, err)
			require.Equal(t, test.noted, string(noted))
		})
	}
}

func TestOnDemand(t *testing.T) {
	t.Setenv(servertest.PartsVariable, "") // it is no part of this machine
	for asked, skipped := range map[string]bool{"": true, "redis": true, "long,redis": false, "all": true, "all,long": false} {
		t.Setenv(servertest.RequireVariable, asked)
		r := &recorder{TB: t}
		servertest.OnDemand(r, "long", "takes an hour")
		require.Equal(t, skipped, r.skipped, asked)
		require.False(t, r.failed)
	}
}
