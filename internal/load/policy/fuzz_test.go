package policy_test

import (
	"bytes"
	"net/netip"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/loadgen/loadgen/internal/load/policy"
)

// FuzzParse parses policies with a typo, or changed by somebody else. A parsed policy, printed, parses to the same; and addresses that must never be
// loaded are refused, whatever the policy lists.
func FuzzParse(f *testing.F) {
	f.Add([]byte(whole))
	f.Add([]byte(`targets = ["0.0.0.0/0:1-65535", "[::]/0:1-65535"]`))
	f.Add([]byte("targets = [\"a\u202e:1\"]\nmemory = \"-1GiB\""))
	f.Fuzz(func(t *testing.T, src []byte) {
		p, diags := policy.Parse(src, "p.hcl")
		if diags.HasErrors() {
			return
		}
		var once, again bytes.Buffer
		require.NoError(t, p.Print(&once))
		q, diags := policy.Parse(once.Bytes(), "p.hcl")
		require.False(t, diags.HasErrors(), "%v\n%s", diags, &once)
		require.NoError(t, q.Print(&again))
		require.Equal(t, once.String(), again.String())
		for _, never := range []string{"169.254.169.254:80", "[fd00:ec2::254]:80", "[::ffff:169.254.169.254]:80", "224.0.0.1:80", "[fe80::1]:80", "255.255.255.255:80"} {
			require.Error(t, p.Admit(netip.MustParseAddrPort(never), ""), never)
		}
	})
}
