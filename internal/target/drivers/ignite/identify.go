package ignite

import (
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"slices"
	"strconv"

	"github.com/loadgen/loadgen/pkg/driver"
)

// Identify asks for the cache's configuration. The result holds "server", "cache" and, if the cache is there, its "mode", "atomicity" and "backups"; a
// "note" says that the protocol does not tell the server's version.
func (Driver) Identify(ctx context.Context, conn net.Conn, link driver.Link) (map[string]string, error) {
	c, err := newCodec(link)
	if err != nil {
		return nil, err
	}
	id := map[string]string{"server": "ignite", "cache": c.name, driver.Note: "the thin client protocol does not tell the server's version"}
	err = driver.Interruptible(ctx, conn, func() error {
		status, body, err := c.ask(conn, ended(c.appendHead(nil, opConfiguration, 1), 0))
		switch {
		case err != nil:
			return err
		case status == noCache: // Prepare makes it
			return nil
		case status != 0:
			return said(status, body)
		}
		return configuration(body, id)
	})
	if err != nil {
		return nil, fmt.Errorf("ask ignite what it is: %w", err)
	}
	return id, nil
}

// configuration reads what matters of a cache's configuration: after its length come atomicity, backups and mode, each an int32.
func configuration(body []byte, id map[string]string) error {
	if len(body) < 4*4 {
		return errObjects
	}
	word := func(i int) uint32 { return binary.LittleEndian.Uint32(body[4*i:]) }
	name := func(i uint32, of ...string) string {
		if int64(i) < int64(len(of)) {
			return of[i]
		}
		return strconv.FormatUint(uint64(i), 10)
	}
	id["atomicity"] = name(word(1), "transactional", "atomic")
	id["backups"] = strconv.FormatUint(uint64(word(2)), 10)
	id["mode"] = name(word(3), "local", "replicated", "partitioned")
	return nil
}

// Prepare makes the cache if it is not there.
func (Driver) Prepare(ctx context.Context, conn net.Conn, link driver.Link) error {
	c, err := newCodec(link)
	if err != nil {
		return err
	}
	request := binary.LittleEndian.AppendUint64(binary.LittleEndian.AppendUint16(make([]byte, lengthSize), opGetOrCreate), 1)
	request = ended(appendObject(request, typeString, c.name), 0)
	err = driver.Interruptible(ctx, conn, func() error {
		status, body, err := c.ask(conn, request)
		if err == nil && status != 0 {
			err = said(status, body)
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("make cache %q: %w", c.name, err)
	}
	return nil
}

// said is the error of a status other than 0.
func said(status uint32, body []byte) error {
	text, _, _ := object(body, typeString)
	return fmt.Errorf("status %d: %s", status, text)
}

// mostAnswer bounds what a server may answer to a question.
const mostAnswer = 1 << 20

// ask greets on a fresh connection, sends a request and returns what answers it.
func (c *codec) ask(conn net.Conn, request []byte) (status uint32, body []byte, err error) {
	hello, _ := c.Greet(nil)
	_, _ = conn.Write(hello) // if this fails, so does reading the answer
	if _, err = read(conn, func(b []byte) (int, error) { return c.ParseGreeting(b, 0) }); err != nil {
		return 0, nil, fmt.Errorf("handshake: %w", err)
	}
	_, _ = conn.Write(request)
	b, err := read(conn, func(b []byte) (int, error) {
		_, _, n, err := frame(b)
		return n, err
	})
	if err != nil {
		return 0, nil, err
	}
	status, body, _, err = frame(b)
	return status, body, err
}

// read reads until parse takes what came.
func read(conn io.Reader, parse func([]byte) (int, error)) ([]byte, error) {
	var b []byte
	for {
		b = slices.Grow(b, 4096)
		got, err := conn.Read(b[len(b):cap(b)])
		b = b[:len(b)+got]
		n, bad := parse(b)
		switch {
		case bad != nil:
			return nil, bad
		case n > 0:
			return b[:n], nil
		case err == io.EOF:
			return nil, fmt.Errorf("the server closed the connection: is it the port of clientConnectorConfiguration, 10800 unless it is told otherwise?")
		case err != nil:
			return nil, err
		case len(b) > mostAnswer:
			return nil, fmt.Errorf("an answer of more than %d bytes", mostAnswer)
		}
	}
}
