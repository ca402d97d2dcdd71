package bareclient

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	"golang.org/x/sys/unix"

	"github.com/loadgen/loadgen/pkg/driver"
)

// openWithin is the time in which a connection must be made and receive its first replies.
const openWithin = 10 * time.Second

// mostReply bounds the greeting, and a reply, in bytes.
const mostReply = 1 << 30

// client holds the connections of all sessions, and their progress.
type client struct {
	poll     int // epoll's descriptor, -1 before there is one
	sessions []session
	request  int    // bytes of a request
	reply    int    // bytes of a reply
	batch    []byte // as many requests as the pipeline holds
	left     int64  // ops whose requests have not been written
	awaited  int64  // ops whose replies have not all come
	result   Result
}

// session is one connection.
type session struct {
	fd     int
	token  int32  // the session's index
	unsent []byte // the rest of what is being written
	full   bool   // the socket's buffer is full
	due    int    // bytes of replies that have not come
	ops    int64  // number of ops that these replies answer
}

// open makes the connections. The caller closes the client, also after an error.
func open(ctx context.Context, cfg Config) (*client, error) {
	c := &client{poll: -1, left: cfg.Ops}
	value := driver.Value{Size: cfg.Size}
	request := cfg.Codec.AppendRequest(nil, &driver.Request{Verb: cfg.Verb, Key: []byte(cfg.Key), Value: &value})
	c.request = len(request)
	for range min(int64(cfg.Pipeline), cfg.Ops) {
		c.batch = append(c.batch, request...)
	}
	var err error
	if c.poll, err = unix.EpollCreate1(unix.EPOLL_CLOEXEC); err != nil {
		return c, fmt.Errorf("epoll_create1: %w", err)
	}
	for range cfg.Sessions {
		if err := c.connect(ctx, cfg, request); err != nil {
			return c, fmt.Errorf("connect to %s: %w", cfg.Endpoint, err)
		}
	}
	return c, nil
}

func (c *client) close() {
	for _, s := range c.sessions {
		_ = unix.Close(s.fd) // no byte of the result depends on it
	}
	if c.poll >= 0 {
		_ = unix.Close(c.poll)
	}
}

// connect adds a session, once the server has been greeted and has answered one request.
func (c *client) connect(ctx context.Context, cfg Config, request []byte) error {
	ctx, cancel := context.WithTimeout(ctx, openWithin)
	defer cancel()
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", cfg.Endpoint)
	if err != nil {
		return err
	}
	defer conn.Close() // the session has a descriptor of its own
	deadline, _ := ctx.Deadline()
	if err := conn.SetDeadline(deadline); err != nil {
		return err
	}
	in := driver.Asker{Conn: conn, Most: mostReply}
	if err := in.Greet(cfg.Codec); err != nil {
		return err
	}
	in.Say(request)
	if err := in.Next(func(b []byte) (n int, err error) {
		if n, err = parse(cfg, b); n > 0 && n < len(b) {
			err = errors.New("more bytes came than were asked for")
		}
		c.reply = n
		return n, err
	}); err != nil {
		return err
	}
	return c.adopt(conn)
}

// parse reads the reply to the request, which must be OK.
func parse(cfg Config, b []byte) (int, error) {
	var reply driver.Reply
	n, err := cfg.Codec.Parse(b, cfg.Verb, &reply)
	switch {
	case err != nil || n == 0:
		return 0, err
	case reply.Outcome == driver.Miss:
		return 0, fmt.Errorf("%v %s: it is not there: put it first", cfg.Verb, cfg.Key)
	case reply.Outcome != driver.OK:
		return 0, fmt.Errorf("%v %s: %v %s", cfg.Verb, cfg.Key, reply.Outcome, reply.Message)
	}
	return n, nil
}

// adopt makes a session of a connection. It duplicates the socket's descriptor, because the runtime's own poller watches the first: every reply would
// have to wake that, too.
func (c *client) adopt(conn net.Conn) error {
	tcp, ok := conn.(*net.TCPConn)
	if !ok {
		return fmt.Errorf("it is a %T, not one of TCP", conn)
	}
	raw, err := tcp.SyscallConn()
	if err != nil {
		return err
	}
	s := session{token: int32(len(c.sessions))}
	var dup error
	err = raw.Control(func(fd uintptr) { s.fd, dup = unix.FcntlInt(fd, unix.F_DUPFD_CLOEXEC, 0) })
	if err := errors.Join(err, dup); err != nil {
		return fmt.Errorf("dup: %w", err)
	}
	c.sessions = append(c.sessions, s)
	ev := unix.EpollEvent{Events: unix.EPOLLIN, Fd: s.token}
	if err := unix.EpollCtl(c.poll, unix.EPOLL_CTL_ADD, s.fd, &ev); err != nil {
		return fmt.Errorf("epoll_ctl: %w", err)
	}
	return nil
}
