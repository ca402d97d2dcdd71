package web

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"net/url"
	"strconv"
	"strings"
	"syscall"

	"github.com/valyala/fasthttp"

	"github.com/loadgen/loadgen/pkg/driver"
)

const (
	headRoom = 16 << 10  // bytes of a usual response's head
	mostHead = 256 << 10 // bytes of any response's head
	interim  = 10        // 1xx responses allowed before the response
	together = 16 << 10  // a body of at most this many bytes is written with its head
	piece    = 32 << 10  // bytes of a body that are asked for at a time
)

func newReader(conn io.Reader) *bufio.Reader { return bufio.NewReaderSize(conn, headRoom) }

// readHead reads a response's head from a connection's reader, which it replaces by a larger one if the head needs that.
func readHead(head *fasthttp.ResponseHeader, in *bufio.Reader, conn io.Reader) (*bufio.Reader, error) {
	err := head.Read(in)
	if err == nil || !errors.As(err, new(*fasthttp.ErrSmallBuffer)) {
		return in, err
	}
	if in.Size() >= mostHead {
		return in, fmt.Errorf("a response with a head of more than %v", driver.Size(mostHead))
	}
	start, _ := in.Peek(in.Buffered()) // they are there
	in = bufio.NewReaderSize(io.MultiReader(bytes.NewReader(bytes.Clone(start)), conn), mostHead)
	return readHead(head, in, conn)
}

// client implements driver.Session.
type client struct {
	dial          func(ctx context.Context) (net.Conn, error)
	run           string
	host          string
	authorization string
	origin        string   // as in a URL: https://HOST
	secrets       []string // that the plan names
	cookies       bool
	most          int  // the largest body, in bytes
	values        bool // the bodies of gets are checked, the whole of them
	room          driver.Room
	words         [driver.NumVerbs]*wording

	conn     net.Conn // nil if closed, because the server has announced or done so
	in       *bufio.Reader
	usual    *bufio.Reader // in, unless a long head needed a larger one
	value    []byte        // the body, if it is held, else its first bytes
	mark     [driver.MarkSize]byte
	drain    []byte // where it goes if it is not; nil until it is needed
	response fasthttp.Response
	out      []byte
	body     []byte
	plain    []byte // of what is encoded
	message  []byte
	looked   []byte     // the body as forms look at it
	jar      driver.Bag // the cookies of the request
	found    driver.Findings
	hop      hop
}

// word compiles the wordings: the plan's forms, and the usual forms for the other verbs.
func (c *client) word(forms []driver.Form, secrets func(string) (string, error)) error {
	for v, usual := range usual {
		w, err := compile(usual, driver.Verb(v))
		if err != nil {
			return err
		}
		c.words[v] = w
	}
	for _, f := range forms {
		words, ok := f.Words.(*Form)
		if !ok {
			return fmt.Errorf("web: op %q is a %T, want a *web.Form", f.Name, f.Words)
		}
		w, err := compile(words, f.Verb)
		if err == nil {
			err = w.disclose(func(name string) (string, error) {
				secret, err := secrets(name)
				c.secrets = append(c.secrets, secret)
				return secret, err
			})
		}
		if err != nil {
			return fmt.Errorf("op %q: %w", f.Name, err)
		}
		c.words[f.Verb], w.op = w, f.Name
	}
	for verb, w := range c.words {
		if w != nil {
			w.head(c)
			w.keeps = c.cookies || w.follow > 0 || len(w.checks)+len(w.captures) > 0
			w.gets = driver.Verb(verb) == driver.Get
			if w.holds = min(w.holds, c.most); w.gets && c.values {
				w.holds = c.most
			}
		}
	}
	return nil
}

func (c *client) connect(ctx context.Context) error {
	conn, err := c.dial(ctx)
	if err != nil {
		return err
	}
	c.conn = conn
	if c.usual == nil {
		c.usual = newReader(conn)
	}
	c.in = c.usual
	c.in.Reset(conn)
	return nil
}

// Do implements driver.Session.
func (c *client) Do(ctx context.Context, req *driver.Request, reply *driver.Reply) error {
	*reply = driver.Reply{}
	w := c.words[req.Verb]
	if w == nil {
		return fmt.Errorf("web: no words for a %v", req.Verb)
	}
	if c.found, c.hop = (driver.Findings{Bag: c.found.Bag[:0]}), (hop{}); w.keeps {
		reply.Found = &c.found
		c.fill(req)
	}
	if !w.leads(req) {
		c.refuse(reply, noPath, w.op, w.path)
		return nil
	}
	var unasked error
	for more := true; more; {
		err := c.request(ctx, w, req)
		switch {
		case err == driver.ErrUnasked:
			unasked = err
		case err != nil && (ctx.Err() != nil || timedOut(err)):
			return context.DeadlineExceeded
		case err != nil:
			return err
		}
		if more, err = c.after(w, req); err != nil {
			c.refuse(reply, "%s: %v", w.op, err)
		}
	}
	if reply.Code = uint16(min(c.response.StatusCode(), math.MaxUint16)); reply.Message == nil {
		c.judge(w, req, reply)
	}
	return unasked
}

// request sends a request over a connection that is made if need be, and reads the response.
func (c *client) request(ctx context.Context, w *wording, req *driver.Request) error {
	if conn, ok := c.conn.(interface{ Ended() bool }); ok && conn.Ended() {
		_ = c.Close() // the server has closed it while it was idle
	}
	if c.conn == nil {
		if err := c.connect(ctx); err != nil {
			return err
		}
	}
	err := c.exchange(ctx, w, req)
	if err == driver.ErrUnasked || err == nil && c.response.ConnectionClose() {
		_ = c.Close() // the server will close it, or what comes next answers nothing
	}
	return err
}

const noPath = "%s: what %v stands for cannot be a path: capture one that begins with one /, without spaces"

// hop is what a redirect makes of a request.
type hop struct {
	line string // its method and path; "" before the first redirect
	bare bool   // it has no body
}

// after takes the cookies of a response, and reports whether a redirect asks for another request: the client's hop.
func (c *client) after(w *wording, req *driver.Request) (more bool, err error) {
	if c.cookies {
		if err := c.remember(req.Target); err != nil {
			return false, err
		}
	}
	status, location := c.response.StatusCode(), c.response.Header.Peek(fasthttp.HeaderLocation)
	if w.follow == 0 || len(location) == 0 || !fasthttp.StatusCodeIsRedirect(status) {
		return false, nil
	}
	line := strings.SplitN(string(c.out), " ", 3)
	to, err := url.Parse(c.origin + line[1])
	if err == nil {
		to, err = to.Parse(string(location))
	}
	switch {
	case c.found.Hops == w.follow:
		return false, fmt.Errorf("more than follow = %d redirects, the last to %.200s", w.follow, location)
	case err != nil:
		return false, fmt.Errorf("a redirect to no URL: %.200q", location)
	case originOf(to) != c.origin:
		return false, fmt.Errorf("a redirect from %s to another origin, which is not followed: %.200s", c.origin, location)
	}
	c.found.Hops++
	if status == 303 && line[0] != "HEAD" || status <= 302 && line[0] == "POST" { // RFC 9110, section 15.4
		line[0], c.hop.bare = "GET", true
	}
	c.hop.line = line[0] + " " + to.RequestURI()
	return true, nil
}

// originOf returns the origin of a URL (RFC 6454): scheme, host and, unless it is the scheme's default, port.
func originOf(u *url.URL) string {
	host := strings.ToLower(u.Host)
	if port := map[string]string{"http": ":80", "https": ":443"}[u.Scheme]; port != "" {
		host = strings.TrimSuffix(host, port)
	}
	return u.Scheme + "://" + host
}

// timedOut reports whether a deadline has ended a read or a write. fasthttp's error for that is not a net.Error.
func timedOut(err error) bool {
	var late interface{ Timeout() bool }
	return errors.As(err, &late) && late.Timeout()
}

// encode builds a request in c.out. It returns a body that is too large to copy, to be written after c.out.
func (c *client) encode(w *wording, req *driver.Request) (rest []byte, err error) {
	if w.whole {
		var is bool
		if c.out, is = w.appendWhole(c.out[:0], req.Key); !is {
			return nil, errors.New("a key that is not a request: write form = \"vegeta\" and the file of the requests in the dataset's keys")
		}
		return nil, nil
	}
	if c.out = append(c.out[:0], c.hop.line...); c.hop.line == "" {
		c.out = w.appendLine(c.out, req, c.run)
	}
	if c.body = c.body[:0]; !c.hop.bare {
		c.body = w.body.Append(c.body, req, c.run)
	}
	c.out = c.appendHead(c.out, w, req, len(c.body))
	if len(c.body) > together {
		return c.body, nil
	}
	c.out = append(c.out, c.body...)
	return nil, nil
}

// exchange sends a request and reads the response to it.
func (c *client) exchange(ctx context.Context, w *wording, req *driver.Request) error {
	deadline, _ := ctx.Deadline()
	if err := c.conn.SetDeadline(deadline); err != nil {
		return err
	}
	rest, err := c.encode(w, req)
	if err != nil {
		return err
	}
	_, broke := c.conn.Write(c.out)
	if broke == nil && len(rest) > 0 {
		_, broke = c.conn.Write(rest)
	}
	if broke != nil && timedOut(broke) {
		return broke
	}
	c.response.Reset()
	c.response.SkipBody = w.method == fasthttp.MethodHead || w.whole && bytes.HasPrefix(req.Key, []byte("HEAD "))
	if err = c.await(); err == nil {
		err = c.receive(w.holds)
	}
	switch {
	case (broke != nil || errors.Is(err, syscall.ECONNRESET)) && c.response.StatusCode() >= fasthttp.StatusMultipleChoices:
		c.response.SetConnectionClose() // refused before it was read, and the status says why
		return nil
	case broke != nil:
		return broke
	case err != nil:
		return err
	}
	if c.in.Buffered() > 0 {
		return driver.ErrUnasked
	}
	if c.in != c.usual {
		c.in = c.usual
		c.in.Reset(c.conn)
	}
	return nil
}

// receive reads a response whose status is known to be final. It counts the body and drops it as it comes, or holds it.
func (c *client) receive(hold int) (err error) {
	c.value = nil
	if c.in, err = readHead(&c.response.Header, c.in, c.conn); err != nil {
		return err
	}
	status, length := c.response.StatusCode(), c.response.Header.ContentLength()
	if c.response.SkipBody || length == 0 || status == fasthttp.StatusNoContent || status == fasthttp.StatusNotModified {
		return nil
	}
	c.response.StreamBody = true
	if err = c.response.ReadBody(c.in, 0); err != nil {
		return err
	}
	if length > c.most {
		return c.ended(nil)
	}
	if hold > 0 && length > hold {
		return errTooLong
	}
	if hold > 0 {
		return c.hold(c.response.BodyStream(), length, hold)
	}
	if c.drain == nil {
		c.drain = make([]byte, piece)
	}
	c.value = c.mark[:0]
	for all := 0; err == nil && all <= c.most; {
		var n int
		n, err = c.response.BodyStream().Read(c.drain)
		c.value = append(c.value, c.drain[:min(n, cap(c.value)-len(c.value))]...)
		all += n
	}
	return c.ended(err)
}

// ended returns the error of a body whose last read returned err; nil if it was too long.
func (c *client) ended(err error) error {
	switch {
	case err == nil:
		return fmt.Errorf("a response of more than max_body = %v", driver.Size(c.most))
	case err == io.EOF:
		return nil
	}
	return err
}

// hold reads a body into the room that clients share; length is negative if it is not known.
func (c *client) hold(body io.Reader, length, most int) (err error) {
	for err == nil && len(c.value) <= most {
		n := piece
		if length >= 0 {
			n = min(piece, length-len(c.value))
		}
		if c.value, err = c.room.Grow(c.value, n); err != nil {
			return err
		}
		n, err = body.Read(c.value[len(c.value):cap(c.value)])
		c.value = c.value[:len(c.value)+n]
	}
	if err == nil && most < c.most {
		return errTooLong
	}
	return c.ended(err)
}

// await waits for the response, and reads the interim responses before it. It checks the status itself: fasthttp takes 000 for 200.
func (c *client) await() error {
	for range interim {
		line, err := c.in.Peek(len("HTTP/1.1 200"))
		if err != nil {
			return err
		}
		status := line[len("HTTP/1.1 "):]
		if string(line[:len("HTTP/1.")]) != "HTTP/1." || line[len("HTTP/1.1")] != ' ' || status[0] < '1' || status[0] > '9' {
			return fmt.Errorf("a response that does not begin with HTTP/1.1 and a status from 100 on: got %q", line)
		}
		if status[0] != '1' || string(status) == "101" {
			return nil
		}
		if c.in, err = readHead(&c.response.Header, c.in, c.conn); err != nil {
			return err
		}
	}
	return fmt.Errorf("more than %d interim responses", interim)
}

// judge turns a response into a reply.
func (c *client) judge(w *wording, req *driver.Request, reply *driver.Reply) {
	status := c.response.StatusCode()
	if reply.Outcome = w.outcome(status); reply.Outcome == driver.OK {
		if w.gets {
			reply.Value = c.value
		}
		if len(w.checks)+len(w.captures) > 0 {
			c.inspect(w, req, reply)
		}
		return
	}
	if reply.Outcome != driver.Error {
		return
	}
	c.message = strconv.AppendInt(append(c.message[:0], "status "...), int64(status), 10)
	c.message = append(append(c.message, ' '), fasthttp.StatusMessage(status)...)
	if to := c.response.Header.Peek(fasthttp.HeaderLocation); status/100 == 3 && len(to) > 0 {
		c.message = append(append(c.message, " to "...), to[:min(len(to), 200)]...)
		c.message = append(c.message, ", which is not followed: write follow = 1 in the request, or the path that it leads to"...)
	}
	reply.Message = c.message
}

// Close implements driver.Session.
func (c *client) Close() error {
	if c.conn == nil {
		return nil
	}
	err := c.conn.Close()
	c.conn = nil
	return err
}
