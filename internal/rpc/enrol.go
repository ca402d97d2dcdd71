package rpc

import (
	"context"
	"errors"
	"time"

	"github.com/loadgen/loadgen/internal/identity"
)

// renewsEvery is how often a worker looks whether its certificate should be renewed. Certificates last for a day.
const renewsEvery = time.Minute

// enrol sees to it that the worker has a certificate, where it needs one from the coordinator.
func enrol(ctx context.Context, cfg JoinConfig) error {
	if cfg.Place.Enrol == nil {
		return nil
	}
	err := cfg.Place.Enrol(ctx)
	var renewal *identity.RenewalError
	if errors.As(err, &renewal) {
		return nil // the one there is will do; keepEnrolled tells
	}
	return err
}

// keepEnrolled has a certificate renewed in good time, also while a run goes on, until ctx ends or the worker does: end awaits that.
func keepEnrolled(ctx context.Context, cfg JoinConfig) (end func()) {
	if cfg.Place.Enrol == nil {
		return func() {}
	}
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan struct{})
	go func() { // ends with end
		defer close(ended)
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
	}()
	return func() {
		cancel()
		<-ended
	}
}

// isRefused says that there is no point in trying again.
func isRefused(err error) bool {
	var refused *RefusedError
	var enrolment *identity.RefusedError
	return errors.As(err, &refused) || errors.As(err, &enrolment)
}
