package command

import (
	"errors"
	"fmt"

	"github.com/spf13/pflag"

	"github.com/loadgen/loadgen/internal/base/safefile"
	"github.com/loadgen/loadgen/internal/load/sockets"
	"github.com/loadgen/loadgen/internal/result/push"
)

// maxAuthorities bounds a file of certificates, in bytes.
const maxAuthorities = 1 << 20

// pushFlags say where metrics are pushed to.
type pushFlags struct {
	url, tokenFile, ca string
	headers            []string
}

func (f *pushFlags) add(flags *pflag.FlagSet) {
	flags.StringVar(&f.url, "remote-write", "", "push metrics once a second, and at the end, to the Prometheus remote-write receiver at `URL` (docs/metrics.md)")
	flags.StringVar(&f.tokenFile, "remote-write-token-file", "", "show that receiver the bearer token on the first line of `FILE`, which only you may read")
	flags.StringArrayVar(&f.headers, "remote-write-header", nil, "send that receiver the header `'NAME: VALUE'`; repeatable")
	flags.StringVar(&f.ca, "remote-write-ca", "", "trust that receiver's certificate if a CA in `FILE` (PEM) issued it (default: those of the system)")
}

// receiver returns the receiver to push to, or nil.
func (f *pushFlags) receiver() (*push.Receiver, error) {
	if f.url == "" {
		if f.tokenFile != "" || f.ca != "" || len(f.headers) > 0 {
			return nil, errors.New("--remote-write-token-file, --remote-write-header and --remote-write-ca are about the receiver of --remote-write: add --remote-write URL")
		}
		return nil, nil
	}
	to, err := push.NewReceiver(f.url)
	if err != nil {
		return nil, fmt.Errorf("--remote-write: %w", err)
	}
	for _, text := range f.headers {
		if err := to.Header(text); err != nil {
			return nil, fmt.Errorf("--remote-write-header: %w", err)
		}
	}
	if f.tokenFile != "" {
		if to.Token, err = safefile.Secret(f.tokenFile); err != nil {
			return nil, fmt.Errorf("--remote-write-token-file: %w", err)
		}
	}
	if f.ca != "" {
		if to.CAs, err = sockets.Authorities(pemFile, f.ca); err != nil {
			return nil, fmt.Errorf("--remote-write-ca: %w", err)
		}
	}
	if err := to.Check(); err != nil {
		return nil, fmt.Errorf("--remote-write: %w", err)
	}
	return to, nil
}
