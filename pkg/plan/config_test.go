package plan_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/loadgen/loadgen/pkg/driver"
	"github.com/loadgen/loadgen/pkg/plan"
)

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
