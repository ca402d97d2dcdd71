package identity

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// Make returns the key of a new authority in the form [Install] takes, a token that its coordinators can [Tokens.Adopt], and the certificate that its
// pages are verified with. Nothing is kept here.
func Make() (key []byte, token *Token, root []byte, err error) {
	made, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, nil, err
	}
	der, err := x509.MarshalPKCS8PrivateKey(made)
	if err != nil {
		return nil, nil, nil, err
	}
	a, err := authorityOf(made)
	if err != nil {
		return nil, nil, nil, err
	}
	if token, err = newToken(keyHash(a.root)); err != nil {
		return nil, nil, nil, err
	}
	return pem.EncodeToMemory(&pem.Block{Type: keyBlock, Bytes: der}), token, a.rootText(), nil
}

// Install puts an authority's key into a directory, where its coordinators look for it, and the token of those who scrape their pages, unless that is
// empty. It makes the directory if needed. Anything already there must be the same.
func Install(dir string, key, scrape []byte) error {
	if err := openDir(dir); err != nil {
		return err
	}
	if err := installed(filepath.Join(dir, keyFile), key); err != nil || len(scrape) == 0 {
		return err
	}
	return installed(filepath.Join(dir, pageTokenFile), scrape)
}

func installed(path string, text []byte) error {
	there, err := readPrivate(path, maxKeyFile)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return writePrivate(path, text, true)
	case err != nil:
		return err
	case !bytes.Equal(there, text):
		return fmt.Errorf("%s holds another secret than the one that was given", path)
	}
	return nil
}
