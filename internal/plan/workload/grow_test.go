package workload

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/loadgen/loadgen/internal/plan/op"
	"github.com/loadgen/loadgen/pkg/driver"
	"github.com/loadgen/loadgen/pkg/plan"
)

// TestRecordsGrowWithEachPut of a session: gets between them change nothing, other sessions have other records, and a step begins anew.
func TestRecordsGrowWithEachPut(t *testing.T) {
	p := onePlan(keys("uniform", "session", 1), closed("load", 2, 40))
	p.Phases[0].Ops = []plan.Weight{{Op: "get", Weight: 1}, {Op: "put", Weight: 1}}
	v := &p.Datasets[0].Values
	v.Fill, v.Checked = "text", false
	v.Record, v.Elements = map[string]string{"members": "grow(uuid)", "title": "lorem(4)"}, 40
	type parent struct {
		Members []string
		Title   string
	}
	var lasts []parent
	for range 2 {
		s := source(t, p, 0, Load)
		for i := range 2 {
			stream, last := s.Stream(i), parent{}
			puts := 0
			var o op.Op
			for stream.Next(&o) {
				if o.Verb != driver.Put {
					continue
				}
				puts++
				var got parent
				b := o.Value.AppendTo(nil)
				require.Len(t, b, o.Value.Size)
				require.NoError(t, json.Unmarshal(b, &got))
				require.Len(t, got.Members, puts)
				require.Equal(t, last.Members, append([]string(nil), got.Members[:puts-1]...))
				last = got
			}
			require.Greater(t, puts, 10)
			lasts = append(lasts, last)
		}
	}
	require.Equal(t, lasts[:2], lasts[2:])
	require.NotEqual(t, lasts[0], lasts[1])
}
