package rundir

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/loadgen/loadgen/internal/base/quantity"
	"github.com/loadgen/loadgen/internal/result/run"
)

// A result holds what a server says of itself, whatever that is; the run's own pack must still be importable.
func TestResultThatQuotesAHostileServerIsImported(t *testing.T) {
	const text = "7.0\x1b]0;x\a\r\n\t\b\f\x7f\u009b2J\u202etxt\u2066\u2028\\u202e \\ \" é 👩\u200d🚀 \xff"
	root := t.TempDir()
	finished(t, root, id, "")
	r, err := Load(root, id)
	require.NoError(t, err)
	r.Environment.Servers = map[string]map[string]map[string]string{"t": {"n0": {"version" + text: text}}}
	require.NoError(t, replaceJSON(system{}, root+"/"+id+"/"+resultFile, r))
	_, _, err = Import(t.TempDir(), bytes.NewReader(pack(t, root, id)), plenty, trusting)
	require.NoError(t, err)
	again, err := Load(root, id)
	require.NoError(t, err)
	require.Equal(t, quantity.Plain(text), again.Environment.Servers["t"]["n0"]["version"+quantity.Plain(text)])
}

// FuzzPlainJSON compares with what is plain after decoding.
func FuzzPlainJSON(f *testing.F) {
	f.Add("a\\u202e\u202e\x00\r\b\\\\\"")
	f.Fuzz(func(t *testing.T, text string) {
		for _, escape := range []bool{false, true} {
			var b bytes.Buffer
			enc := json.NewEncoder(&b)
			enc.SetEscapeHTML(escape)
			require.NoError(t, enc.Encode(run.Reason{Text: text}))
			var as, got run.Reason
			require.NoError(t, json.Unmarshal(b.Bytes(), &as))
			require.NoError(t, json.Unmarshal(plainJSON(b.Bytes()), &got))
			require.Equal(t, quantity.Plain(as.Text), got.Text)
		}
	})
}
