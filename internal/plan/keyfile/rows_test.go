package keyfile

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestRows(t *testing.T) {
	rows, err := ReadRows(strings.NewReader("\ufeffuser,name\nann,Ann\nbob,\"Bob \"\"the \\ builder\"\", Jr.\"\n"))
	require.NoError(t, err)
	require.Equal(t, []string{"user", "name"}, rows.Columns)
	require.Equal(t, [][]string{{"ann", "Ann"}, {"bob", `Bob "the \ builder", Jr.`}}, rows.Table)
	for text, says := range map[string]string{
		"":              "1:1: no rows",
		"a,b\n":         "1:1: no rows",
		"a,b\n1\n":      "2:1: wrong number of fields",
		"a,a\n1,2\n":    `1:1: a column named "a"`,
		"a,\n1,2\n":     `1:1: a column named ""`,
		"a\n\"x\"y\"\n": "2:3: extraneous",
		"a\n\"x\n":      `extraneous or missing " in quoted-field`,
		"a{b}\n1\n":     `1:1: a column named "a{b}"`,
	} {
		_, err := ReadRows(strings.NewReader(text))
		require.ErrorContains(t, err, says, "%q", text)
	}
}
