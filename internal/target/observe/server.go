package observe

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/loadgen/loadgen/internal/base/panics"
	"github.com/loadgen/loadgen/pkg/driver"
	"github.com/loadgen/loadgen/pkg/plan"
)

// maxAnswer bounds the total size of a server's answer to one question, in bytes.
const maxAnswer = 4 << 20

// server asks a target's servers about themselves, over a separate connection to each.
type server struct {
	o         *plan.Observe
	endpoints []string
	asks      []*asker
	wrong     error // why no server can be asked
	same      func(endpoints []string, facts map[string]map[string]string) [][]string
}

func newServer(m Means, o *plan.Observe, t *plan.Target, endpoints []string) *server {
	s := &server{o: o, endpoints: endpoints, same: m.Same}
	var d driver.Informant
	for _, known := range m.Drivers {
		if i, ok := known.(driver.Informant); ok && known.Name() == t.Driver {
			d = i
		}
	}
	if d == nil {
		s.wrong = fmt.Errorf("driver %q tells nothing", t.Driver)
		return s
	}
	for _, endpoint := range endpoints {
		s.asks = append(s.asks, &asker{
			d: d, t: t, secrets: m.Secrets, endpoint: endpoint, alone: len(endpoints) == 1 && o.Kind != plan.ObserveCounts,
			dial: func(ctx context.Context) (net.Conn, error) { return m.Dial(ctx, t, endpoint) },
		})
	}
	return s
}

func (s *server) Of() string { return strings.Join(s.endpoints, ", ") }

// Take asks all endpoints concurrently.
func (s *server) Take(ctx context.Context) (value map[string]float64, missing map[string]string) {
	if s.wrong != nil {
		return nothing("%v", s.wrong)
	}
	all := make([]figures, len(s.asks))
	var group sync.WaitGroup
	for i, a := range s.asks {
		group.Go(func() { all[i] = a.take(ctx, s.o.Fields) })
	}
	group.Wait()
	names, all := s.once(all)
	return combine(s.o.Combine, s.o.Fields, names, all)
}

// once leaves out the figures that a server has reported a second time, under another of its names.
func (s *server) once(all []figures) (names []string, left []figures) {
	if s.same == nil {
		return s.endpoints, all
	}
	known := map[string]map[string]string{}
	for i, a := range s.asks {
		known[s.endpoints[i]] = a.identity()
	}
	again := map[string]bool{}
	for _, same := range s.same(s.endpoints, known) {
		for _, endpoint := range same[1:] {
			again[endpoint] = true
		}
	}
	for i, endpoint := range s.endpoints {
		if !again[endpoint] {
			names, left = append(names, endpoint), append(left, all[i])
		}
	}
	return names, left
}

// Identity returns what identifies the one server that was asked last; nil if it was not reached, or there are several.
func (s *server) Identity() map[string]string {
	if len(s.asks) != 1 {
		return nil
	}
	return s.asks[0].identity()
}

// Dialed returns how many connections were made so far.
func (s *server) Dialed() (n uint64) {
	for _, a := range s.asks {
		n += a.dialed.Load()
	}
	return n
}

func (s *server) Close() {
	for _, a := range s.asks {
		a.hangUp()
	}
}

// asker is a connection to one endpoint.
type asker struct {
	d        driver.Informant
	t        *plan.Target
	secrets  func(name string) (string, error)
	endpoint string
	alone    bool // the target has no other endpoint, and nobody asks which server it is
	dial     func(ctx context.Context) (net.Conn, error)

	mu   sync.Mutex        // Close runs in another goroutine than take
	conn net.Conn          // nil before the first, and once it is lost
	talk *driver.Asker     // on conn
	is   map[string]string // facts that identify the server that conn leads to

	dialed atomic.Uint64 // connections made
}

// take asks for all figures and picks those of the fields.
func (a *asker) take(ctx context.Context, fields []plan.Field) figures {
	kept := a.connected()
	wants := make([]string, len(fields))
	for i := range fields {
		wants[i] = fields[i].Name
	}
	told, err := a.ask(ctx, wants)
	if err != nil && kept && ctx.Err() == nil { // the server may have been restarted
		a.hangUp()
		told, err = a.ask(ctx, wants)
	}
	if err != nil {
		a.hangUp()
		if ctx.Err() != nil && errors.Is(ctx.Err(), context.DeadlineExceeded) {
			err = errors.New("no answer in time")
		}
		return figures{missing: map[string]string{"": err.Error()}}
	}
	f := newFigures()
	for _, field := range fields {
		if text, ok := told[field.Name]; ok {
			f.parse(field.Name, text)
		} else if a.d.Describe(field.Name).Sparse {
			f.set(field.Name, 0)
		} else {
			f.missing[field.Name] = "the server does not tell it"
		}
	}
	return f
}

func (a *asker) ask(ctx context.Context, wants []string) (map[string]string, error) {
	conn, err := a.connect(ctx)
	if err != nil {
		return nil, err
	}
	release := interruptible(ctx, conn)
	defer release()
	var told map[string]string
	err = panics.Safely(func() error {
		link := a.link()
		link.Figures = wants
		question, err := a.d.AppendQuestion(nil, link)
		if err != nil {
			return err
		}
		a.talk.Say(question)
		return a.talk.Next(func(b []byte) (n int, err error) {
			told, n, err = a.d.ParseFigures(b)
			return n, err
		})
	})
	return told, err
}

// interruptible makes reads and writes end when ctx does, until release is called.
func interruptible(ctx context.Context, conn net.Conn) (release func() bool) {
	_ = conn.SetDeadline(time.Time{}) // if the connection is gone, the next write returns an error
	return context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) })
}

// link returns the link of a connection outside any run, which carries no load.
func (a *asker) link() driver.Link {
	return driver.Link{Endpoint: a.endpoint, Config: a.t.Config, Secrets: a.secrets}
}

// shake begins a connection as the driver does.
func (a *asker) shake(ctx context.Context, conn net.Conn) (made net.Conn, err error) {
	shaker, ok := a.d.(driver.Handshaker)
	if !ok {
		return conn, nil
	}
	err = driver.Interruptible(ctx, conn, func() (err error) {
		made, err = shaker.Handshake(ctx, conn, a.link())
		return err
	})
	return made, err
}

// connect returns the connection. If there is none, it opens one and greets.
func (a *asker) connect(ctx context.Context) (net.Conn, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.conn != nil {
		return a.conn, nil
	}
	conn, err := a.dial(ctx)
	if err != nil {
		return nil, err
	}
	a.dialed.Add(1)
	a.is = a.identify(ctx, conn)
	fresh := conn
	if err := panics.Safely(func() (err error) {
		if conn, err = a.shake(ctx, conn); err == nil {
			err = a.greet(ctx, conn)
		}
		return err
	}); err != nil {
		_ = fresh.Close() // the error that counts is the greeting's
		return nil, err
	}
	a.conn = conn
	return conn, nil
}

// identify returns facts that distinguish the server from those of other endpoints. Facts that it does not report are left out.
func (a *asker) identify(ctx context.Context, conn net.Conn) map[string]string {
	is := map[string]string{}
	if at, ok := conn.RemoteAddr().(*net.TCPAddr); ok {
		is["address"] = at.String()
	}
	d, tells := a.d.(driver.Identifier)
	if !tells || a.alone {
		return is
	}
	other, err := a.dial(ctx) // with some drivers, a connection ends after it has identified the server
	if err != nil {
		return is
	}
	a.dialed.Add(1)
	defer other.Close()
	defer interruptible(ctx, other)()
	_ = panics.Safely(func() error { // without it, only the address identifies the server
		told, err := d.Identify(ctx, other, a.link())
		if err == nil {
			is["instance"] = told["instance"]
		}
		return err
	})
	return is
}

// identity returns what identifies the server; nil if it was not reached.
func (a *asker) identity() map[string]string {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.conn == nil {
		return nil
	}
	return a.is
}

// greet sends what a connection of the wire protocol begins with.
func (a *asker) greet(ctx context.Context, conn net.Conn) error {
	a.talk = &driver.Asker{Conn: conn, Most: maxAnswer}
	wire, ok := a.d.(driver.Wire)
	if !ok {
		return nil
	}
	codec, err := wire.NewCodec(driver.Link{Config: a.t.Config, Secrets: a.secrets})
	if err != nil {
		return err
	}
	defer interruptible(ctx, conn)()
	return a.talk.Greet(codec)
}

func (a *asker) connected() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.conn != nil
}

// hangUp closes the connection. The next question opens another.
func (a *asker) hangUp() {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.conn != nil {
		_ = a.conn.Close() // no reply was outstanding
		a.conn = nil
	}
}
