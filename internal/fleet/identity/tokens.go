package identity

import (
	"bytes"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"
)

const (
	tokensFile    = "tokens.json"
	tokensLock    = "tokens.flock"
	maxTokensFile = 256 << 10
	maxTokens     = 256
	lockWithin    = 2 * time.Second
	rememberDead  = time.Hour // how long an expired token is kept, so that a refusal can say it expired

	// MaxTokenTTL is the longest lifetime of a token.
	MaxTokenTTL = 30 * 24 * time.Hour
	// MaxTokenUses is the most workers that may enrol with one token.
	MaxTokenUses = 10000
)

// Tokens are the tokens that an authority's coordinators accept. They are kept in a file beside the authority's key, which several processes may use at
// the same time. The file holds only hashes of the secrets.
type Tokens struct {
	dir       string
	authority [sha256.Size]byte

	mu     sync.Mutex             // between goroutines; the file's lock is between processes
	served map[requestServed]bool // requests recently granted for a token

	queue sync.Mutex
	uses  []*tokenUse // waiting for the next change of the file to count them
}

// tokenUse is a request for a certificate with a token.
type tokenUse struct {
	hash  [sha256.Size]byte
	sum   [sha256.Size]byte // hash of the key to be certified and the name of its worker
	issue func() error
	done  bool // done, with the result in err; Tokens.mu guards both
	err   error
}

// TokenInfo is a token's entry in the file.
type TokenInfo struct {
	ID      string    `json:"id"`
	Created time.Time `json:"created"`
	Expires time.Time `json:"expires"`
	Uses    int       `json:"uses"` // uses left
	Hash    []byte    `json:"hash"` // SHA-256 of the secret
}

// OpenTokens returns the tokens of the authority in a directory, and makes the authority if there is none.
func OpenTokens(dir string) (*Tokens, error) {
	a, err := OpenAuthority(dir)
	if err != nil {
		return nil, err
	}
	return a.tokens, nil
}

// CheckToken checks a token's lifetime and number of workers.
func CheckToken(ttl time.Duration, uses int) error {
	switch {
	case ttl < time.Second || ttl > MaxTokenTTL:
		return fmt.Errorf("a token cannot last for %v: write a duration from 1s to %v", ttl, MaxTokenTTL)
	case uses < 1 || uses > MaxTokenUses:
		return fmt.Errorf("a token cannot be for %d workers: write a number from 1 to %d", uses, MaxTokenUses)
	}
	return nil
}

// Create makes a token for the given number of workers. Its secret is stored nowhere.
func (t *Tokens) Create(ttl time.Duration, uses int) (*Token, error) {
	if err := CheckToken(ttl, uses); err != nil {
		return nil, err
	}
	token, err := newToken(t.authority)
	if err != nil {
		return nil, err
	}
	return token, t.change(true, func(list []TokenInfo) ([]TokenInfo, error) {
		if len(list) >= maxTokens {
			return nil, fmt.Errorf("%d tokens are there already: loadgen token revoke ends those that nobody needs", len(list))
		}
		return append(list, token.entry(ttl, uses)), nil
	})
}

// entry is a new token's entry in the file.
func (t *Token) entry(ttl time.Duration, uses int) TokenInfo {
	now, hash := time.Now().UTC().Truncate(time.Second), sha256.Sum256(t.secret[:])
	return TokenInfo{ID: t.ID(), Created: now, Expires: now.Add(ttl), Uses: uses, Hash: hash[:]}
}

// List returns the tokens, oldest first. Expired ones stay listed for an hour.
func (t *Tokens) List() ([]TokenInfo, error) {
	list, err := t.read()
	return alive(list), err
}

// Revoke makes a token useless. Certificates already issued for it stay valid.
func (t *Tokens) Revoke(id string) error {
	if err := checkTokenID(id); err != nil {
		return err
	}
	return t.change(true, func(list []TokenInfo) ([]TokenInfo, error) {
		at := slices.IndexFunc(list, func(k TokenInfo) bool { return k.ID == id })
		if at < 0 {
			return nil, fmt.Errorf("there is no token %s: see loadgen token list", id)
		}
		return slices.Delete(list, at, at+1), nil
	})
}

// requestServed is a key that was certified for a worker by a token. If the worker asks again, the answer was lost on the way, and the use is already
// counted.
type requestServed struct {
	token string // ID
	sum   [sha256.Size]byte
}

// maxServed bounds the remembered requests. Beyond it all are forgotten, and a repeated request counts again.
const maxServed = 2 * MaxTokenUses

// use calls issue to grant a request if secret belongs to a valid token. sum is the request's hash. The use counts only if issue succeeds, and only
// once per request. Concurrent uses are counted in one change of the file.
func (t *Tokens) use(secret []byte, sum [sha256.Size]byte, issue func() error) (id string, err error) {
	u := &tokenUse{hash: sha256.Sum256(secret), sum: sum, issue: issue}
	t.queue.Lock()
	t.uses = append(t.uses, u)
	t.queue.Unlock()
	t.mu.Lock()
	defer t.mu.Unlock()
	if !u.done { // else an earlier caller has served this one too
		t.count()
	}
	return secretID(u.hash), u.err
}

// count serves everyone waiting.
func (t *Tokens) count() {
	t.queue.Lock()
	waiting := t.uses
	t.uses = nil
	t.queue.Unlock()
	err := t.changeLocked(false, func(list []TokenInfo) ([]TokenInfo, error) {
		for _, u := range waiting {
			u.err = t.serve(u, list)
		}
		return list, nil
	})
	for _, u := range waiting {
		u.done = true
		if u.err == nil {
			u.err = err
		}
	}
}

// serve issues the certificate, and counts it in the list.
func (t *Tokens) serve(u *tokenUse, list []TokenInfo) error {
	id, found := secretID(u.hash), -1
	served := requestServed{id, u.sum}
	for i := range list { // compare all, so that the time taken reveals nothing
		if subtle.ConstantTimeCompare(list[i].Hash, u.hash[:]) == 1 {
			found = i
		}
	}
	switch now := time.Now(); {
	case found < 0:
		return &wrongTokenError{fmt.Sprintf("token %s is not known here: it was revoked, or expired long ago, or is another coordinator's", id)}
	case !now.Before(list[found].Expires):
		return &wrongTokenError{fmt.Sprintf("token %s expired at %s", id, list[found].Expires.Format(time.RFC3339))}
	case list[found].Uses <= 0 && !t.served[served]:
		return &wrongTokenError{fmt.Sprintf("token %s has been used as often as it may be", id)}
	}
	if err := u.issue(); err != nil {
		return err
	}
	if t.served[served] {
		return nil
	}
	list[found].Uses--
	if t.served == nil || len(t.served) >= maxServed {
		t.served = map[requestServed]bool{}
	}
	t.served[served] = true
	return nil
}

// wrongTokenError says why a token cannot be used.
type wrongTokenError struct{ why string }

func (e *wrongTokenError) Error() string {
	return e.why + "; make another one with loadgen token create on the coordinator's machine"
}

// change replaces the file with the result of edit. A durable change survives a power failure.
func (t *Tokens) change(durable bool, edit func([]TokenInfo) ([]TokenInfo, error)) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.changeLocked(durable, edit)
}

func (t *Tokens) changeLocked(durable bool, edit func([]TokenInfo) ([]TokenInfo, error)) error {
	unlock, err := t.lock()
	if err != nil {
		return err
	}
	defer unlock()
	list, err := t.read()
	if err != nil {
		return err
	}
	if list, err = edit(alive(list)); err != nil {
		return err
	}
	b, err := json.MarshalIndent(list, "", "  ")
	if err != nil {
		return err
	}
	return writePrivate(filepath.Join(t.dir, tokensFile), append(b, '\n'), durable)
}

// alive drops tokens that expired long ago.
func alive(list []TokenInfo) []TokenInfo {
	now := time.Now()
	return slices.DeleteFunc(list, func(k TokenInfo) bool { return now.Sub(k.Expires) > rememberDead })
}

func (t *Tokens) read() ([]TokenInfo, error) {
	path := filepath.Join(t.dir, tokensFile)
	text, err := readPrivate(path, maxTokensFile)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("tokens: %w", err)
	}
	var list []TokenInfo
	dec := json.NewDecoder(bytes.NewReader(text))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&list); err != nil {
		return nil, fmt.Errorf("tokens: %s is damaged: delete it, and make new tokens: %w", path, err)
	}
	return list, nil
}

// lock keeps other processes from changing the file. The kernel releases it with the process.
func (t *Tokens) lock() (unlock func(), err error) {
	path := filepath.Join(t.dir, tokensLock)
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0o600)
	if err != nil {
		return nil, fmt.Errorf("tokens: %w", err)
	}
	for deadline := time.Now().Add(lockWithin); ; time.Sleep(time.Millisecond) {
		err = syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if err == nil {
			return func() { _ = file.Close() }, nil
		}
		if !errors.Is(err, syscall.EWOULDBLOCK) || time.Now().After(deadline) {
			return nil, errors.Join(fmt.Errorf("tokens: lock %s, for %v: %w", path, lockWithin, err), file.Close())
		}
	}
}

// Adopt accepts a token that was made elsewhere with the same authority's key, for the given number of workers and from now on. A token that is already
// there stays unchanged.
func (t *Tokens) Adopt(token *Token, ttl time.Duration, uses int) error {
	if err := CheckToken(ttl, uses); err != nil {
		return err
	}
	if token.authority != t.authority {
		return fmt.Errorf("%v names the key of another authority than the one in %s", token, t.dir)
	}
	return t.change(true, func(list []TokenInfo) ([]TokenInfo, error) {
		if slices.ContainsFunc(list, func(k TokenInfo) bool { return k.ID == token.ID() }) {
			return list, nil
		}
		return append(list, token.entry(ttl, uses)), nil
	})
}

const (
	tokenPrefix = "lg1"
	secretBytes = 16
	idBytes     = 4 // of a token's ID, the start of its secret's hash
)

// ErrToken says that a text is not a token. It does not quote the text, most of which may be a secret.
var ErrToken = errors.New("write a token as `loadgen token create` prints it: lg1.KEY.SECRET")

// Token lets a worker enrol with the coordinators of one authority. Its text is
//
//	lg1.<SHA-256 of the authority's public key>.<secret of 128 bits>
//
// both in base64url without padding. The hash is over the key as certificates hold it (SubjectPublicKeyInfo), so a worker can verify its coordinator
// before it sends the secret.
type Token struct {
	authority [sha256.Size]byte
	secret    [secretBytes]byte
}

// ParseToken reads a token's text.
func ParseToken(text string) (*Token, error) {
	parts := strings.Split(strings.TrimSpace(text), ".")
	if len(parts) != 3 || parts[0] != tokenPrefix {
		return nil, ErrToken
	}
	t := new(Token)
	for i, into := range [][]byte{t.authority[:], t.secret[:]} {
		b, err := base64.RawURLEncoding.Strict().DecodeString(parts[i+1])
		if err != nil || len(b) != len(into) {
			return nil, ErrToken
		}
		copy(into, b)
	}
	return t, nil
}

// newToken makes a random token for an authority.
func newToken(authority [sha256.Size]byte) (*Token, error) {
	t := &Token{authority: authority}
	_, err := rand.Read(t.secret[:])
	return t, err
}

// Text is what a worker is given. Anyone who reads it can enrol.
func (t Token) Text() string {
	return tokenPrefix + "." + base64.RawURLEncoding.EncodeToString(t.authority[:]) + "." + base64.RawURLEncoding.EncodeToString(t.secret[:])
}

// ID names the token without revealing the secret.
func (t Token) ID() string { return secretID(sha256.Sum256(t.secret[:])) }

// String names the token without the secret, so that a token may be logged.
func (t Token) String() string { return "token " + t.ID() }

// GoString returns the same as String.
func (t Token) GoString() string { return t.String() }

// secretID is a token's ID, from the hash of its secret.
func secretID(hash [sha256.Size]byte) string { return hex.EncodeToString(hash[:idBytes]) }

// checkTokenID checks that a text could be a token's ID.
func checkTokenID(id string) error {
	if b, err := hex.DecodeString(id); err != nil || len(b) != idBytes {
		return fmt.Errorf("%q is not the ID of a token: see loadgen token list", id)
	}
	return nil
}
