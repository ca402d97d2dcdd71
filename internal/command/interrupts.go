package command

import (
	"context"
	"os"
	"os/signal"
	"syscall"
	"time"
)

// drainWithin is how long an interrupted run may take to finish outstanding ops, even if answers still come.
const drainWithin = 5 * time.Second

// endings are the signals that end a command: Ctrl-C, SIGTERM and, when its terminal or session goes away, SIGHUP. If SIGHUP was ignored when the
// process started, as under nohup, it stays so.
func endings() []os.Signal {
	if signal.Ignored(syscall.SIGHUP) {
		return []os.Signal{os.Interrupt, syscall.SIGTERM}
	}
	return []os.Signal{os.Interrupt, syscall.SIGTERM, syscall.SIGHUP}
}

// outliveReaders makes writes to standard output and standard error fail once nobody reads them any more, until release is called. Without it, the
// first such write ends the process, and so the run, by SIGPIPE.
func outliveReaders() (release func()) {
	pipes := make(chan os.Signal, 1) // nobody reads it
	signal.Notify(pipes, syscall.SIGPIPE)
	return func() { signal.Stop(pipes) }
}

// interrupts closes drain on the first of the signals that end a command, and ends ctx on the second, or drainWithin after the first. Until release
// is called, the command also goes on if nobody reads what it writes. An interrupted one reports what it did, however often it is interrupted.
func interrupts(parent context.Context) (drain chan struct{}, ctx context.Context, release func()) {
	ctx, cancel := context.WithCancel(parent)
	drain = make(chan struct{})
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, endings()...)
	again := outliveReaders()
	done := make(chan struct{})
	go func() { // ends with release
		defer close(done)
		select {
		case <-signals:
		case <-ctx.Done():
			signal.Stop(signals)
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
		again()
		cancel()
		<-done
	}
}
