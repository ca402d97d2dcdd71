package command

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os/signal"
	"time"

	"github.com/spf13/pflag"

	"github.com/loadgen/loadgen/internal/base/safefile"
	"github.com/loadgen/loadgen/internal/fleet/identity"
	"github.com/loadgen/loadgen/internal/result/prom"
)

// pageFlags say where metrics are served, and to whom.
type pageFlags struct {
	means     identity.PageMeans
	tokenFile string
	linger    time.Duration
	end       func(context.Context) // ends the page after the run; nil once it has ended
}

// add adds the flags. what says whose metrics they are, and when.
func (f *pageFlags) add(flags *pflag.FlagSet, what string) {
	flags.StringVar(&f.means.Address, "http", "", "serve metrics "+what+" at `ADDRESS`; port 0 for any free one; beyond the loopback, over TLS to authenticated clients only (docs/metrics.md)")
	flags.StringArrayVar(&f.means.Names, "http-name", nil, "also serve the page of --http as `NAME`; requests for other hosts are refused")
	flags.StringVar(&f.means.Cert, "http-cert", "", "with --http-key: serve the page with the certificate in `FILE` (default: one from this user's own CA); reread when it changes")
	flags.StringVar(&f.means.Key, "http-key", "", "read the certificate's key from `FILE`, which only you may read")
	flags.StringVar(&f.tokenFile, "http-token-file", "", "require the token on the first line of `FILE` from scrapers (default: one kept in the state directory)")
}

// addLive adds the flags of a page that also shows a run to people.
func (f *pageFlags) addLive(flags *pflag.FlagSet) {
	f.means.Live = true
	f.add(flags, "for Prometheus, and a live page for browsers, during the run")
	flags.DurationVar(&f.linger, "linger", 0, "keep the page of --http up for `DURATION` after the run, or until Ctrl-C, with the report on it (docs/watching.md)")
}

// stay keeps the page up for as long as --linger says, or until the command is interrupted.
func (f *pageFlags) stay(parent context.Context, words io.Writer) {
	if f.end == nil {
		return
	}
	fmt.Fprintf(words, "the report stays on the live page for %v; Ctrl-C ends it\n", f.linger)
	ctx, cancel := signal.NotifyContext(parent, endings()...)
	defer cancel()
	select {
	case <-ctx.Done():
	case <-time.After(f.linger):
	}
	f.end(parent)
}

// check refuses flags that need --http without it.
func (f *pageFlags) check() error {
	if f.means.Address == "" && f.linger != 0 {
		return errors.New("--linger keeps the page of --http up: add --http HOST:PORT")
	}
	if f.linger < 0 {
		return fmt.Errorf("--linger %v: write a positive duration, such as 10m", f.linger)
	}
	if f.means.Address == "" && (len(f.means.Names) > 0 || f.means.Cert != "" || f.means.Key != "" || f.tokenFile != "") {
		return errors.New("--http-name, --http-cert, --http-key and --http-token-file are about the page of --http: add --http HOST:PORT")
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
		if means.Token, err = safefile.Secret(f.tokenFile); err != nil {
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
