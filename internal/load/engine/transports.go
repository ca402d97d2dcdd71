package engine

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"time"

	"github.com/loadgen/loadgen/internal/base/panics"
	"github.com/loadgen/loadgen/internal/load/sockets"
	"github.com/loadgen/loadgen/pkg/driver"
	"github.com/loadgen/loadgen/pkg/driver/localfile"
	"github.com/loadgen/loadgen/pkg/plan"
)

// newTransport makes the transport of a lane's requests, by the kind of the driver.
func (g *group) newTransport(e *Engine, la *lane) (transport, error) {
	l, x := la.l, la.side
	limit := backlog + g.phase.Pipeline()*max(1, 2*g.phase.Ahead()) // beside the puts of a chain, gets behind its gap
	switch d := x.driver.(type) {
	case driver.Inside:
		return e.newInside(la), nil
	case driver.Wire:
		return g.newWire(e, la, d, limit)
	case driver.Timed:
		if g.executor == plan.Blocking {
			return g.newBlocking(la, g.phase.Pipeline(), func(context.Context, driver.Link) (driver.Session, error) {
				return timedSession{driver: d, config: x.target.Config}, nil
			}), nil
		}
		return &timed{l: l, lane: la, driver: d, config: x.target.Config, endpoints: len(x.endpoints), limit: limit, timeout: int64(x.target.Timeout)}, nil
	case localfile.Driver:
		return &thread{l: l, store: g.files.store, timeout: int64(x.target.Timeout)}, nil
	case driver.Dialer:
		return g.newBlocking(la, g.phase.Pipeline(), d.Dial), nil
	}
	return nil, fmt.Errorf("driver %q has no transport", x.driver.Name())
}

// checkCodec returns an error if a phase asks of a codec what it cannot do.
func (x *side) checkCodec(codec driver.Codec) error {
	_, tagged := codec.(driver.Tagged)
	_, stateful := codec.(driver.Stateful)
	if x.cluster != nil && (tagged || stateful) {
		return fmt.Errorf("driver %q redirects no requests whose connections have a state or whose replies have ids", x.target.Driver)
	}
	return nil
}

// newBlocking makes a transport of blocking clients; clients is how many each session has of an endpoint.
func (g *group) newBlocking(la *lane, clients int, dial dialer) *blocking {
	x := la.side
	return &blocking{
		l: la.l, lane: la, dial: dial, link: x.link, endpoints: x.endpoints, clients: clients, limit: backlog + 1, timeout: x.target.Timeout,
		partials: &g.partials,
		connect: func(ctx context.Context, endpoint, client int) (net.Conn, error) {
			return x.dialOneOf(ctx, x.endpoint(endpoint), client)
		},
	}
}

// newWire makes the transport of a lane whose target speaks a byte protocol. The wires of a loop share its poller.
func (g *group) newWire(e *Engine, la *lane, d driver.Wire, limit int) (transport, error) {
	l, x := la.l, la.side
	var codec driver.Codec
	if err := panics.Safely(func() (err error) {
		codec, err = d.NewCodec(x.link(""))
		return err
	}); err != nil {
		return nil, err
	}
	if x.cluster != nil {
		var err error
		if la.routes, err = newRoutes(x.cluster, codec); err != nil {
			return nil, err
		}
		la.routes.renew()
	}
	if err := x.checkCodec(codec); err != nil {
		return nil, err
	}
	if l.poll == nil {
		var err error
		if l.poll, err = g.newPoller(e, l); err != nil {
			return nil, err
		}
	}
	w := newWire(la, l.poll, codec)
	if la.routes != nil {
		la.routes.codec = w.codec
	}
	_, closes := d.(driver.IdleCloser)
	w.idle, w.alone = int64(x.target.IdleTimeout), x.cluster == nil
	w.rests = w.alone && (x.target.TLS != nil || closes || w.idle > 0)
	w.limit, w.timeout, w.partials = limit, int64(x.target.Timeout), &g.partials
	return w, nil
}

// newPoller returns the poller of a loop's wires, for the phase's executor.
func (g *group) newPoller(e *Engine, l *loop) (sockets.Poller, error) {
	shakes := slices.ContainsFunc(g.sides(), func(x *side) bool {
		_, shakes := x.driver.(driver.Handshaker)
		return shakes
	})
	if !shakes && g.executor == plan.EventLoop {
		return e.newPoller()
	}
	dial := func(ctx context.Context, token int32) (net.Conn, error) {
		ctx, cancel := context.WithTimeout(ctx, openWithin)
		defer cancel()
		x, at := l.leads(token)
		end := x.endpoint(at)
		conn, steps, err := sockets.Stepped(ctx, l.clock.now, func(ctx context.Context) (net.Conn, error) { return x.connect.To(ctx, end) })
		if l.churn.plan != nil {
			l.churn.dialed.Store(token, steps)
		}
		shaker, ok := x.driver.(driver.Handshaker)
		if err != nil || !ok {
			return conn, err
		}
		link := x.link(end.Text)
		link.Interrupt = func(how interruption) { l.interruptions.Store(token, how) }
		return shake(ctx, shaker, conn, link)
	}
	if g.executor == plan.EventLoop {
		return sockets.NewHanded(dial)
	}
	return sockets.NewPipes(e.clock.now, e.lease.over, dial), nil
}

// shake has the driver begin a connection.
func shake(ctx context.Context, d driver.Handshaker, conn net.Conn, link driver.Link) (made net.Conn, err error) {
	deadline, _ := ctx.Deadline()
	if err = conn.SetDeadline(deadline); err == nil {
		err = driver.Interruptible(ctx, conn, func() error {
			return panics.Safely(func() (err error) {
				made, err = d.Handshake(ctx, conn, link)
				return err
			})
		})
	}
	if err == nil {
		err = made.SetDeadline(time.Time{})
	}
	if err == nil {
		return made, nil
	}
	_ = conn.Close() // the first error matters more
	if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, os.ErrDeadlineExceeded) {
		err = fmt.Errorf("no answer to the handshake in time: %w", err)
	}
	return nil, err
}

// timedSession lets the blocking executor carry a driver that has no transport.
type timedSession struct {
	driver driver.Timed
	config any
}

func (s timedSession) Do(ctx context.Context, req *driver.Request, reply *driver.Reply) error {
	d := s.driver.Reply(s.config, req, reply)
	if d <= 0 {
		return nil
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (s timedSession) Close() error { return nil }

// newInside makes the transport, over what the run keeps for the target.
func (e *Engine) newInside(la *lane) *inside {
	c := la.side.target.Cache
	if e.caches == nil {
		e.caches = map[string]*caches{}
	}
	of := e.caches[la.side.target.Name]
	if of == nil {
		of = &caches{own: map[int]*lru{}}
		e.caches[la.side.target.Name] = of
	}
	return &inside{l: la.l, lane: la, of: of, timeout: int64(la.side.target.Timeout), ttl: int64(c.TTL), coalesce: c.Coalesce, flights: map[string]*flight{}}
}
