package page

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/loadgen/loadgen/internal/result/run"
)

// TestBrieflyNamesWhatDiffers: a chart's lines are named by what not all of them share.
func TestBrieflyNamesWhatDiffers(t *testing.T) {
	x := &run.Experiment{}
	for _, name := range []string{"test=a,db=x,n=1", "test=a,db=y,n=1", "test=b,db=x,n=1", "test=b,db=y,n=1"} {
		x.Variants = append(x.Variants, run.Variant{Name: name})
	}
	of := func(names ...string) (brief []string) {
		variants := drawnVariants(x, names)
		for _, v := range variants {
			brief = append(brief, briefly(variants)(v))
		}
		return brief
	}
	require.Equal(t, []string{"db=x", "db=y"}, of("test=b,db=y,n=1", "test=b,db=x,n=1", "test=b,db=y,n=1"), "in the experiment's order")
	require.Equal(t, []string{"test=a,db=x", "test=b,db=y"}, of("test=a,db=x,n=1", "test=b,db=y,n=1"))
	require.Equal(t, []string{"test=b,db=x,n=1"}, of("test=b,db=x,n=1"), "alone")
	require.Empty(t, of())

	some := []string{"test=b,db=x,n=1", "test=b,db=y,n=1"}
	require.Equal(t, 3, placeOf(some[1], some, x), "as everywhere")
	x.Variants = append(x.Variants, make([]run.Variant, colours)...)
	require.Equal(t, 1, placeOf(some[1], some, x), "more variants than colours")
}
