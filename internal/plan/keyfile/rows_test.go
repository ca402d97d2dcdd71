package keyfile

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestRows(t *testing.T) {
	set, _, err := Read(strings.NewReader("\ufeffuser,name\nann,Ann\nbob,\"Bob \"\"the \\ builder\"\", Jr.\"\n"), Source{Form: RowForm}, 2, 60)
	require.NoError(t, err)
	require.Equal(t, &Set{[]byte(`annAnnbobBob "the \ builder", Jr.`), []uint32{3, 6, 9, 33}, []string{"user", "name"}}, set)
	for text, says := range map[string]string{
		"":                                       "1:1: no rows",
		"a,b\n":                                  "1:1: no rows",
		"a,b\n1\n":                               "2:1: wrong number of fields",
		"a,a\n1,2\n":                             `1:1: a column named "a"`,
		"a,\n1,2\n":                              `1:1: a column named ""`,
		"a\n\"x\"y\"\n":                          "2:3: extraneous",
		"a{b}\n1\n":                              `1:1: a column named "a{b}"`,
		"a\n" + strings.Repeat("1\n", maxRows+1): "1000002:1: more than 1000000 rows",
	} {
		_, err := Check(strings.NewReader(text), Source{Form: RowForm})
		require.ErrorContains(t, err, says, "%q", text)
	}
}
