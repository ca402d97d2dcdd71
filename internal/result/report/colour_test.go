package report

import (
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestColours are on verdicts, marks and titles, and change no text; without them, nothing is sent that a terminal obeys.
func TestColours(t *testing.T) {
	var plainly, colourful strings.Builder
	require.NoError(t, Text(&plainly, overloaded(), Options{}))
	require.NoError(t, Text(&colourful, overloaded(), Options{Colour: true}))
	require.NotContains(t, plainly.String(), "\x1b")
	require.Contains(t, colourful.String(), "\x1b[31mINVALID\x1b[0m")
	require.Regexp(t, `\n\x1b\[1m── mixed `, colourful.String())
	require.Equal(t, plainly.String(), regexp.MustCompile(`\x1b\[\d*m`).ReplaceAllString(colourful.String(), ""))
}
