package driver

import (
	"context"
	"fmt"
	"net"
	"time"
)

// Interruptible runs f, which talks on conn and blocks on nothing else, and interrupts it when ctx ends: f's reads and writes then return errors, and
// conn is of no further use. If ctx has ended, its error precedes f's.
func Interruptible(ctx context.Context, conn net.Conn, f func() error) error {
	stop := context.AfterFunc(ctx, func() {
		_ = conn.SetDeadline(time.Unix(1, 0)) // wakes a blocked read or write, whose error then says what was missing
	})
	defer stop()
	err := f()
	if ended := ctx.Err(); err != nil && ended != nil {
		return fmt.Errorf("%w: %w", ended, err)
	}
	return err
}
