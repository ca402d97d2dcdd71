package identity

import (
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestTokenText parses what was written, and nothing else; the secret appears nowhere but there.
func TestTokenText(t *testing.T) {
	token, err := newToken([32]byte{1, 2, 3})
	require.NoError(t, err)
	text := token.Text()
	require.Regexp(t, `^lg1\.[A-Za-z0-9_-]{43}\.[A-Za-z0-9_-]{22}$`, text)
	again, err := ParseToken(text + "\n")
	require.NoError(t, err)
	require.Equal(t, token, again)
	secret := text[strings.LastIndexByte(text, '.')+1:]
	for _, shown := range []string{
		fmt.Sprint(token), fmt.Sprint(*token), fmt.Sprintf("%+v", token), fmt.Sprintf("%#v", token), fmt.Sprintf("%#v", *token), token.ID(),
	} {
		require.NotContains(t, shown, secret)
		require.Contains(t, shown, token.ID())
	}
	for _, wrong := range []string{
		"", "lg1", "lg2" + text[3:], text[:len(text)-1], text + "A", text + ".", "lg1." + secret + text[3:], strings.Replace(text, ".", ",", 1), text[:20] + "=" + text[21:],
	} {
		_, err := ParseToken(wrong)
		require.ErrorIs(t, err, ErrToken, wrong)
		require.NotContains(t, err.Error(), secret)
	}
}

// TestTokensAreKeptHashed in a file that nobody else may read.
func TestTokensAreKeptHashed(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "fleet")
	tokens, err := OpenTokens(dir)
	require.NoError(t, err)
	token, err := tokens.Create(time.Minute, 2)
	require.NoError(t, err)
	path := filepath.Join(dir, "tokens.json")
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	require.NotContains(t, string(text), token.Text()[len(token.Text())-22:])
	info, err := os.Stat(path)
	require.NoError(t, err)
	require.EqualValues(t, 0o600, info.Mode().Perm())
	list, err := tokens.List()
	require.NoError(t, err)
	hash := sha256.Sum256(token.secret[:])
	require.Equal(t, hash[:], list[0].Hash)
	require.Equal(t, token.ID(), list[0].ID)
	require.NoError(t, tokens.Revoke(token.ID()))
	require.ErrorContains(t, tokens.Revoke(token.ID()), "there is no token "+token.ID())
	require.ErrorContains(t, tokens.Revoke("x"), "is not the ID of a token")
	for _, uses := range []int{0, -1, MaxTokenUses + 1} {
		_, err := tokens.Create(time.Minute, uses)
		require.ErrorContains(t, err, "write a number from 1")
	}
	for _, ttl := range []time.Duration{0, -time.Hour, MaxTokenTTL + time.Second} {
		_, err := tokens.Create(ttl, 1)
		require.ErrorContains(t, err, "write a duration from 1s")
	}
	require.NoError(t, os.Chmod(path, 0o644))
	_, err = tokens.List()
	require.ErrorContains(t, err, "is open to others")
	require.NoError(t, os.Chmod(path, 0o600))
	require.NoError(t, os.WriteFile(path, []byte("[{"), 0o600))
	_, err = tokens.List()
	require.ErrorContains(t, err, "is damaged: delete it")
}

// TestUsesAreCountedAcrossProcesses: of many that enrol at two coordinators at once, as many get in as the token allows. One that gets no certificate
// does not count.
func TestUsesAreCountedAcrossProcesses(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "fleet")
	var coordinators [2]*Tokens
	for i := range coordinators {
		var err error
		coordinators[i], err = OpenTokens(dir)
		require.NoError(t, err)
	}
	token, err := coordinators[0].Create(time.Minute, 20)
	require.NoError(t, err)
	var all sync.WaitGroup
	var mu sync.Mutex
	issued := 0
	for i := range 60 {
		all.Go(func() {
			_, _ = coordinators[i%2].use(token.secret[:], [32]byte{byte(i)}, func() error {
				if i%3 == 0 {
					return fmt.Errorf("no certificate")
				}
				mu.Lock()
				defer mu.Unlock()
				issued++
				return nil
			})
		})
	}
	all.Wait()
	require.Equal(t, 20, issued)
	list, err := coordinators[1].List()
	require.NoError(t, err)
	require.Zero(t, list[0].Uses)
}

// TestOneWorkerThatAsksManyTimesCountsOnce, even while its first request is still waiting.
func TestOneWorkerThatAsksManyTimesCountsOnce(t *testing.T) {
	tokens, err := OpenTokens(filepath.Join(t.TempDir(), "fleet"))
	require.NoError(t, err)
	token, err := tokens.Create(time.Minute, 2)
	require.NoError(t, err)
	var all sync.WaitGroup
	for range 50 {
		all.Go(func() {
			_, err := tokens.use(token.secret[:], [32]byte{1}, func() error { return nil })
			require.NoError(t, err)
		})
	}
	all.Wait()
	list, err := tokens.List()
	require.NoError(t, err)
	require.Equal(t, 1, list[0].Uses)
}

// FuzzParseToken: a parsed token's text parses to the same token, and errors never quote the text, most of which may be a secret.
func FuzzParseToken(f *testing.F) {
	token, err := newToken(sha256.Sum256([]byte("key")))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(token.Text())
	f.Add("lg1.." + strings.Repeat("A", 22))
	f.Fuzz(func(t *testing.T, text string) {
		got, err := ParseToken(text)
		if err != nil {
			require.Equal(t, ErrToken, err)
			return
		}
		require.Equal(t, strings.TrimSpace(text), got.Text(), "a token has one text")
	})
}
