package rpc

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/loadgen/loadgen/internal/fleet/identity"
)

// renewsEvery is how often a worker checks whether to renew its certificate. Certificates last for a day.
const renewsEvery = time.Minute

// enrol makes sure that the worker has a certificate, if it needs one from the coordinator.
func enrol(ctx context.Context, cfg JoinConfig) error {
	if cfg.Place.Enrol == nil {
		return nil
	}
	err := cfg.Place.Enrol(ctx)
	if _, ok := errors.AsType[*identity.RenewalError](err); ok {
		return nil // the existing certificate is still valid; keepEnrolled reports the error
	}
	return err
}

// keepEnrolled renews the certificate in good time, also during a run, until ctx ends or end is called. end waits for it.
func keepEnrolled(ctx context.Context, cfg JoinConfig) (end func()) {
	if cfg.Place.Enrol == nil {
		return func() {}
	}
	ctx, cancel := context.WithCancel(ctx)
	var renewing sync.WaitGroup
	renewing.Go(func() {
		look := time.Tick(renewsEvery)
		for {
			select {
			case <-look:
			case <-ctx.Done():
				return
			}
			if err := cfg.Place.Enrol(ctx); err != nil && ctx.Err() == nil {
				cfg.Logger.Warn("certificate not renewed", "err", line(err.Error()))
			}
		}
	})
	return func() {
		cancel()
		renewing.Wait()
	}
}

// isRefused says whether trying again is pointless.
func isRefused(err error) bool {
	return errors.As(err, new(*RefusedError)) || errors.As(err, new(*identity.RefusedError))
}
