package driver

import (
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestWordsNumberNamesInOrder(t *testing.T) {
	w := NewWords(map[string]bool{"visit": false, "enqueue": true, "browse": false, "get": false, "put": true})
	require.Equal(t, []string{"browse", "visit", "enqueue"}, slices.Concat(w.own[0], w.own[1]))
	for name, stores := range map[string]bool{"visit": false, "enqueue": true, "browse": false, "get": false, "put": true, "clear": false} {
		v, ok := w.Verb(name)
		require.True(t, ok, name)
		require.Equal(t, name, w.Name(v))
		require.Equal(t, stores, v.Stores(), name)
		_, store := Words{}.Verb(name)
		require.Equal(t, !store, v.Own(), name)
	}
	browse, _ := w.Verb("browse")
	visit, _ := w.Verb("visit")
	require.Less(t, browse, visit)
	_, ok := w.Verb("other")
	require.False(t, ok)
	require.Empty(t, w.Name(visit+1))
	require.Empty(t, Words{}.Name(visit))
	require.Empty(t, w.Name(Verb(NumVerbs)))
	require.Equal(t, "own op 0", browse.String())
}

// Words give each of a plan's names its own verb, up to the maximum of those that store and of those that do not.
func TestWordsHoldAsManyAsAPlanMayHave(t *testing.T) {
	for _, stores := range []bool{false, true} {
		own := map[string]bool{}
		for i := range maxOwn + 1 {
			own[fmt.Sprintf("op%02d", i)] = stores
		}
		w := NewWords(own)
		var seen []Verb
		for i := range maxOwn {
			v, ok := w.Verb(fmt.Sprintf("op%02d", i))
			require.True(t, ok)
			require.Less(t, int(v), NumVerbs)
			require.Equal(t, stores, v.Stores())
			require.False(t, slices.Contains(seen, v))
			seen = append(seen, v)
		}
		_, ok := w.Verb(fmt.Sprintf("op%02d", maxOwn))
		require.False(t, ok)
	}
}
