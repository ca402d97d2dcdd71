package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
	"time"
)

// drainWithin is how long an interrupted run may take to finish outstanding ops, even if answers still come.
const drainWithin = 5 * time.Second

// interrupts closes drain on the first Ctrl-C or SIGTERM, and ends ctx on the second, or drainWithin after the first. release stops it.
func interrupts(parent context.Context) (drain chan struct{}, ctx context.Context, release func()) {
	ctx, cancel := context.WithCancel(parent)
	drain = make(chan struct{})
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	done := make(chan struct{})
	go func() { // ends with release
		defer close(done)
		select {
		case <-signals:
		case <-ctx.Done():
			return
		}
		close(drain)
		select {
		case <-signals:
		case <-time.After(drainWithin):
		case <-ctx.Done():
		}
		cancel()
	}()
	return drain, ctx, func() {
		signal.Stop(signals)
		cancel()
		<-done
	}
}
