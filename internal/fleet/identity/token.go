package identity

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
)

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
