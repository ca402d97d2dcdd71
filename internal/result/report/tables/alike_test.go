package tables

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestTextsAlike are joined, with the values of each number.
func TestTextsAlike(t *testing.T) {
	for _, tt := range []struct{ texts, want []string }{
		{nil, nil},
		{[]string{"nothing was lost"}, []string{"nothing was lost"}},
		{[]string{"waited 5 % of 2 s", "waited 31.5 % of 2 s"}, []string{"waited 5 or 31.5 % of 2 s"}},
		{[]string{"9 of 10", "10 of 10", "11 of 10", "9 of 10"}, []string{"9, 10 or 11 of 10"}},
		{[]string{"1,200 ops", "3 ops", "40 ops", "99.5 ops"}, []string{"3 to 1,200 ops"}},
		{[]string{"at 3 ms", "at 4 µs", "at 5 ms"}, []string{"at 3 or 5 ms", "at 4 µs"}},
		{[]string{"# of 1", "# of 2"}, []string{"# of 1 or 2"}},
	} {
		require.Equal(t, tt.want, JoinAlike(tt.texts))
	}
}
