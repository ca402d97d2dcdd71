package form_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/loadgen/loadgen/pkg/driver/form"
)

// A form takes what any of its templates does.
func TestAWordingTakesWhatItsTemplatesTake(t *testing.T) {
	take := func(texts ...string) (w form.Wording) {
		for _, text := range texts {
			template, err := form.Parse(text)
			require.NoError(t, err)
			w.Take(template)
		}
		return w
	}
	require.Equal(t, form.Wording{}, take("plain", "{run} {n}"))
	require.Equal(t, form.Wording{Keyed: true}, take("{key}", "plain"))
	require.Equal(t, form.Wording{Stores: true, Keyed: true}, take("{value}", "x:{key}"))
	require.Equal(t, form.Wording{Stores: true, Fields: []string{"a", "b"}}, take("{field.a}", "{field.b}"))
}
