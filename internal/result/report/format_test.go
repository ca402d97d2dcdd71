package report

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestFlow(t *testing.T) {
	require.Equal(t, []string{""}, Wrap("", 10))
	require.Equal(t, []string{"one two", "three"}, Wrap(" one  two\nthree ", 9))
	require.Equal(t, []string{"µµµµ µµµµ"}, Wrap("µµµµ µµµµ", 9))
	require.Equal(t, []string{"unbreakable", "x"}, Wrap("unbreakable x", 5))
	require.Equal(t, []string{"took", "1.90 s;", "10 % of", "it"}, Wrap("took 1.90 s; 10 % of it", 7))
	require.Equal(t, []string{"a,", "b, c"}, flow([]string{"a", "b", "c"}, ", ", 4), "the comma behind b has no room either")
	require.Equal(t, []string{"1 MB out ·", "2 MB in"}, flow([]string{"1 MB out", "2 MB in"}, " · ", 12))
}
