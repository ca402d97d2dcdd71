package driver

import (
	"context"
	"net"
)

// Link is what a codec or a session is made for.
type Link struct {
	Endpoint string // as the plan writes it: host:port, or the path of a Unix socket; "" of a codec that several connections share
	Run      string // the run's id, with which keys and names may be told from another run's; "" outside a run
	Config   any    // of NewConfig's type, and valid
	Forms    []Form // the ops that the plan words itself, of a driver that is a form.Former

	// Secrets looks up the value of a named secret on this machine; nil where the config names none. Its error says where it looked, never what the
	// value is.
	Secrets func(name string) (string, error)

	// Dial connects to Endpoint: over TLS where the target wants it, where the worker's policy allows it, and with its bytes counted. It is of a
	// [Dialer], and of a connection that its client makes.
	Dial func(ctx context.Context) (net.Conn, error)
}

// Identifier is what a [Wire] or a [Dialer] is, too, whose servers say what they are.
type Identifier interface {
	Driver
	// Identify asks the server at the far end of a fresh connection what it is: version and the settings that bear on
	// a measurement, by name: "version" and "server", or [Note] in their place when the server greets well and will not say. The error of one that is not
	// there for loads says what it is. The connection's deadline is set by the caller.
	Identify(ctx context.Context, conn net.Conn, link Link) (map[string]string, error)
}

// Preparer is what a [Wire] or a [Dialer] is, too, whose servers want something made before they can be loaded: tables, scripts.
type Preparer interface {
	Driver
	// Prepare makes it on the server at the far end of a fresh connection, whose deadline is set by the caller. Each worker calls it for each endpoint,
	// once a run and before the run's first load of the target: several at the same time, and where an earlier run has made it already.
	Prepare(ctx context.Context, conn net.Conn, link Link) error
}

// Cleaner is a [Preparer] that can take away again what Prepare made.
type Cleaner interface {
	Preparer
	// CleanUp does so on the server at the far end of a fresh connection. After a clear phase that came to its end each worker calls it for each endpoint,
	// once its own connections are closed: several at the same time, and while others are still at work. So the driver waits for these, by the deadline of
	// ctx, and leaves what is still used or is not its own, which is no error. Before the run's next load of the target, Prepare is called again.
	CleanUp(ctx context.Context, conn net.Conn, link Link) error
}

// Encrypter is a [Wire] whose config says whether connections are encrypted, as its protocol has a way of its own to begin that: its [Handshaker] does.
type Encrypter interface {
	Wire
	// Encrypted says whether connections of a target with the config may be.
	Encrypted(config any) bool
}

// Note is the name under which Identify says why a server's facts are missing.
const Note = "note"
