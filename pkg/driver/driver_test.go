package driver

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestVerbNames(t *testing.T) {
	want := []string{"get", "put", "delete", "append", "write", "read", "clear"}
	require.Len(t, want, int(firstOwn))
	for i, name := range want {
		require.Equal(t, name, Verb(i).String())
		verb, ok := Words{}.Verb(name)
		require.True(t, ok)
		require.Equal(t, Verb(i), verb)
	}
	for _, name := range []string{"", "GET", "get ", "store"} {
		_, ok := Words{}.Verb(name)
		require.False(t, ok, name)
	}
}

func TestOutcomeNames(t *testing.T) {
	want := []string{"ok", "miss", "conflict", "quorum_failed", "timeout", "error", "shed"}
	require.Len(t, want, NumOutcomes)
	for i, name := range want {
		require.Equal(t, name, Outcome(i).String())
	}
}

// A secret has a name and nothing else, however it is printed.
func TestSecretPrintsItsName(t *testing.T) {
	s := Secret{Name: "CACHE_PASSWORD"}
	require.Equal(t, "secret(CACHE_PASSWORD)", s.String())
	require.Equal(t, "secret(CACHE_PASSWORD)", fmt.Sprint(s))
	require.Equal(t, "{secret(CACHE_PASSWORD)}", fmt.Sprintf("%v", struct{ Password Secret }{s}))

	var log bytes.Buffer
	logger := slog.New(slog.NewTextHandler(&log, nil))
	logger.Info("connect", "password", s)
	require.Contains(t, log.String(), "password=secret(CACHE_PASSWORD)\n")

	text, err := json.Marshal(struct {
		Password Secret `json:"password"`
	}{s})
	require.NoError(t, err)
	require.JSONEq(t, `{"password":{"secret":"CACHE_PASSWORD"}}`, string(text))
	var back Secret
	require.NoError(t, json.Unmarshal([]byte(`{"secret":"CACHE_PASSWORD"}`), &back))
	require.Equal(t, s, back)
}
