package driver

import (
	"context"
	"net"
)

// Link holds what a codec or a session needs.
type Link struct {
	Endpoint string   // as the plan writes it: host:port, or the path of a Unix socket; "" for a codec that several connections share
	Others   []string // all of the target's endpoints, in the same form
	Ring     bool     // keys are placed by the servers' Points, if the driver is a [Replicator]
	Run      string   // the run's id, which distinguishes its keys and names from another run's; "" outside a run
	TLS      bool     // Dial's connections are encrypted
	Config   any      // of NewConfig's type, and valid
	Forms    []Form   // the ops that the plan words itself, if the driver is a form.Former
	Batch    bool     // the load asks for several keys in a get
	Values   bool     // the load looks at the whole values of gets; otherwise Reply.Value may be left empty, or hold the first [MarkSize] bytes
	Figures  []string // the figures that an [Informant] is asked for; it may return others, too

	// Secrets looks up a named secret's value on this machine; nil if the config names none. Its error says where it looked, never the value.
	Secrets func(name string) (string, error)

	// Dial connects to Endpoint, over TLS if the target wants it and only where the worker's policy allows, and counts the bytes. It is set only for
	// a [Dialer], for the connections that its client opens, also in Prepare and Identify. They have a method Ended() bool, which neither waits nor reads, and reports whether the
	// server has closed the connection. Servers close connections that have been idle for some time, which must not fail a request: a client calls
	// Ended before it writes, and dials again if it is true.
	Dial func(ctx context.Context) (net.Conn, error)

	// Interrupt takes what makes the server give up the requests of the connection that a [Handshaker] begins, in a few words on another one, fresh
	// and as the target's load makes it. It is nil outside a load. A connection whose server owes answers for too long is closed, unless there is such
	// a function: then the server is asked, and the connection goes on once all is answered.
	Interrupt func(how func(ctx context.Context, conn net.Conn) error)

	// Room is memory for replies that a [Dialer]'s client has to hold whole; set only for one.
	Room Room
}

// Secret returns a secret's value, "" for nil.
func (l *Link) Secret(s *Secret) (string, error) {
	if s == nil {
		return "", nil
	}
	return l.Secrets(s.Name)
}

// Room is memory outside of the heap for one reply of a client at a time. All clients of a phase share a limit, so that servers cannot fill a worker's
// memory by long replies.
type Room interface {
	// Grow returns b with room for at least n more bytes; b is nil for a new reply, else what Grow returned last, with or without more in it. It fails
	// if all replies would take more than the limit. The memory is the client's until its next call of Grow with nil, or until it is closed.
	Grow(b []byte, n int) ([]byte, error)
}

// Identifier is an optional interface of a [Wire] or a [Dialer] whose servers identify themselves.
type Identifier interface {
	Driver
	// Identify asks the server at the far end of a fresh connection for its version and the settings that bear on a measurement. It returns them by
	// name: "version" and "server", or [Note] instead if the server accepts the greeting but will not say. If the server is not meant for loads, the
	// error says what it is. The caller sets the connection's deadline.
	//
	// "instance", if the server reports one, identifies it among all servers for as long as it runs: endpoints with the same instance are one server.
	// A process id alone is not enough, since containers have the same ones.
	Identify(ctx context.Context, conn net.Conn, link Link) (map[string]string, error)
}

// Preparer is an optional interface of a [Wire] or a [Dialer] whose servers need something in place before a load: tables, scripts.
type Preparer interface {
	Driver
	// Prepare creates it on the server at the far end of a fresh connection, whose deadline the caller sets. Each worker calls it for each endpoint,
	// once per run, before the run's first load of the target. Several calls may run at the same time, and an earlier run may have created it already.
	Prepare(ctx context.Context, conn net.Conn, link Link) error
}

// Cleaner is a [Preparer] that can remove what Prepare created.
type Cleaner interface {
	Preparer
	// CleanUp removes it from the server at the far end of a fresh connection. After a completed clear phase, each worker calls it for each endpoint
	// once its own connections are closed. Several calls may run at the same time, and while other workers are still busy. So the driver waits for
	// those, up to the deadline of ctx, and leaves things that are still in use or not its own, without an error. Before the run's next load of the
	// target, Prepare is called again.
	CleanUp(ctx context.Context, conn net.Conn, link Link) error
}

// Encrypter is a [Wire] whose config says whether connections are encrypted, because its protocol has its own way to start encryption: its
// [Handshaker] does that.
type Encrypter interface {
	Wire
	// Encrypted reports whether connections of a target with the config may be encrypted.
	Encrypted(config any) bool
}

// Note is the name under which Identify says why a server's facts are missing.
const Note = "note"
