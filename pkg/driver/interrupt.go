package driver

import (
	"context"
	"fmt"
	"net"
	"time"
)

// Interruptible runs f, which talks on conn and blocks in nothing else, and ends it soon after ctx ends: its reads and writes return errors
// then, and conn is of no further use. An error of f is preceded by ctx's when that has ended.
func Interruptible(ctx context.Context, conn net.Conn, f func() error) error {
	stop := context.AfterFunc(ctx, func() {
		_ = conn.SetDeadline(time.Unix(1, 0)) // wakes a blocked read or write; its error then says what could not be had
	})
	defer stop()
	err := f()
	if ended := ctx.Err(); err != nil && ended != nil {
		return fmt.Errorf("%w: %w", ended, err)
	}
	return err
}
