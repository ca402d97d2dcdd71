package command

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/loadgen/loadgen/internal/base/safefile"
	"github.com/loadgen/loadgen/internal/fleet/identity"
	"github.com/loadgen/loadgen/internal/result/rundir"
)

// tokenVariable is the environment variable that may hold a worker's token.
const tokenVariable = "LOADGEN_TOKEN"

// defaultTTL is the default lifetime of a token.
const defaultTTL = 15 * time.Minute

// fleetDir is where this user's fleets keep their sockets, keys, tokens and certificates.
func fleetDir() (string, error) {
	runs, err := rundir.DefaultRoot(os.Getenv)
	if err != nil {
		return "", err
	}
	return filepath.Join(filepath.Dir(runs), "fleet"), nil
}

// addFiles adds the flags for certificates of the user's own PKI.
func addFiles(flags *pflag.FlagSet, files *identity.Files) {
	flags.StringVar(&files.CA, "tls-ca", "", "with --tls-cert and --tls-key: accept peers certified by the CAs in `FILE` (docs/security.md); reread when it changes")
	flags.StringVar(&files.Cert, "tls-cert", "", "present the certificate in `FILE`, from your own PKI")
	flags.StringVar(&files.Key, "tls-key", "", "read the certificate's key from `FILE`, which only you may read")
}

// listenAt returns the place where a coordinator waits for workers.
func (f *fleetFlags) listenAt() (identity.Place, error) {
	dir, err := fleetDir()
	if err != nil {
		return identity.Place{}, err
	}
	return identity.Means{Dir: dir, TLS: f.tls}.ListenAt(f.listen)
}

// joinFlags say where a worker's coordinator is, and how the worker proves itself to it.
type joinFlags struct {
	place     string
	token     string
	tokenFile string
	tls       identity.Files
}

func (f *joinFlags) add(flags *pflag.FlagSet) {
	flags.StringVar(&f.place, "join", identity.DefaultName, "join the coordinator at `PLACE`: socket:NAME on this machine, or HOST:PORT")
	flags.StringVar(&f.token, "token", "", "join with the coordinator's `TOKEN`; other users of this machine can see it in the process list")
	flags.StringVar(&f.tokenFile, "token-file", "", "join with the token on the first line of `FILE`, which only you may read")
	addFiles(flags, &f.tls)
}

// joinAt returns the coordinator's place, for the worker of a name.
func (f *joinFlags) joinAt(name string) (identity.Place, error) {
	dir, err := fleetDir()
	if err != nil {
		return identity.Place{}, err
	}
	token, err := f.means()
	if err != nil {
		return identity.Place{}, err
	}
	place, err := identity.Means{Dir: dir, Token: token, Name: name, TLS: f.tls}.JoinAt(f.place)
	if err != nil {
		return identity.Place{}, fmt.Errorf("--join %w", err)
	}
	return place, nil
}

// means returns the given token, or nil. It takes one from the environment only if the place accepts tokens.
func (f *joinFlags) means() (*identity.Token, error) {
	text, from := f.token, "--token"
	switch {
	case f.token != "" && f.tokenFile != "":
		return nil, errors.New("--token and --token-file are two ways to give a token: use one of them")
	case f.tokenFile != "":
		from = "--token-file " + f.tokenFile
		var err error
		if text, err = safefile.Secret(f.tokenFile); err != nil {
			return nil, fmt.Errorf("--token-file: %w", err)
		}
	case f.token == "" && f.tls.IsZero() && strings.Contains(f.place, ":") && !strings.HasPrefix(f.place, "socket:"):
		text, from = os.Getenv(tokenVariable), tokenVariable
	}
	if text == "" {
		return nil, nil
	}
	token, err := identity.ParseToken(text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", from, err)
	}
	return token, nil
}
