package main

import (
	"errors"
	"fmt"

	"github.com/spf13/pflag"

	"github.com/loadgen/loadgen/internal/identity"
	"github.com/loadgen/loadgen/internal/prom"
	"github.com/loadgen/loadgen/internal/regular"
)

// pageFlags say where metrics are served, and to whom.
type pageFlags struct {
	means     identity.PageMeans
	tokenFile string
}

// add adds the flags. what says whose metrics they are, and when.
func (f *pageFlags) add(flags *pflag.FlagSet, what string) {
	flags.StringVar(&f.means.Address, "http", "", "serve metrics "+what+" at `ADDRESS`, port 0 for any free one; beyond the loopback by TLS, to those who prove who they are (docs/metrics.md)")
	flags.StringArrayVar(&f.means.Names, "http-name", nil, "the page of --http also goes by `NAME`; requests that name another host are refused")
	flags.StringVar(&f.means.Cert, "http-cert", "", "with --http-key: show the certificate in `FILE` for the page (default: one of this user's own CA); read again when it changes")
	flags.StringVar(&f.means.Key, "http-key", "", "the certificate's key is in `FILE`, which nobody but you may read")
	flags.StringVar(&f.tokenFile, "http-token-file", "", "those who scrape show the token that is the first line of `FILE` (default: one that is kept in the state directory)")
}

// check refuses flags that need --http without it.
func (f *pageFlags) check() error {
	if f.means.Address == "" && (len(f.means.Names) > 0 || f.means.Cert != "" || f.means.Key != "" || f.tokenFile != "") {
		return errors.New("--http-name, --http-cert, --http-key and --http-token-file are about the page of --http: say where with --http HOST:PORT")
	}
	return nil
}

// open opens the page's port.
func (f *pageFlags) open() (*identity.Door, error) {
	means := f.means
	var err error
	if means.Dir, err = fleetDir(); err != nil {
		return nil, err
	}
	if f.tokenFile != "" {
		if means.Token, err = regular.Secret(f.tokenFile); err != nil {
			return nil, fmt.Errorf("--http-token-file: %w", err)
		}
	}
	return means.Open()
}

// door returns a function that opens the port for a run; nil if no metrics are wanted.
func (f *pageFlags) door() func() (prom.Door, error) {
	if f.means.Address == "" {
		return nil
	}
	return func() (prom.Door, error) { return f.open() }
}
