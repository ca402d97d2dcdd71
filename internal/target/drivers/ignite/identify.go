package ignite

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"

	"github.com/loadgen/loadgen/pkg/driver"
)

// Identify asks for the cache's configuration and the cluster's nodes. The result holds "server", "cache" and, if the cache is there, its "mode",
// "atomicity", "backups" and "region"; where the nodes have ignite-indexing, "version" and "nodes", and else a "note". A cache in another region than
// the plan's is refused.
func (Driver) Identify(ctx context.Context, conn net.Conn, link driver.Link) (map[string]string, error) {
	c, err := newCodec(link)
	if err != nil {
		return nil, err
	}
	id := map[string]string{"server": "ignite", "cache": c.name}
	err = driver.Interruptible(ctx, conn, func() error {
		a, err := c.shake(conn)
		if err != nil {
			return err
		}
		status, body, err := a.ask(ended(c.appendHead(nil, opConfiguration, 1), 0))
		switch {
		case err != nil:
			return err
		case status == 0:
			if err := c.configuration(body, id); err != nil {
				return err
			}
		case status != noCache: // which Prepare creates
			return said(status, body)
		}
		status, body, err = a.ask(appendSQL(nil, 2, "select VERSION from NODES where IS_CLIENT = false order by NODE_ORDER"))
		if err != nil {
			return err
		}
		nodes, ok := rows(body, 1)
		if status != 0 || !ok || len(nodes) == 0 {
			id[driver.Note] = "without ignite-indexing on the nodes, the thin client protocol does not tell the server's version"
			return nil
		}
		id["version"], _, _ = strings.Cut(nodes[0][0], "#") // the build follows
		id["nodes"] = strconv.Itoa(len(nodes))
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("ask ignite what it is: %w", err)
	}
	return id, nil
}

// configuration reads the beginning of a cache's configuration: its length; atomicity, backups and mode, each an int32; whether values are copied
// when read; and the region's name.
func (c *codec) configuration(body []byte, id map[string]string) error {
	const head = 4*4 + 1
	if len(body) < head {
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
	region, _, named := object(body[head:], typeString)
	if named {
		id["region"] = string(region)
	}
	if c.region != "" && c.region != string(region) {
		return fmt.Errorf("cache %q is in another data region, %q: write that as the region, or the cache_name of another cache", c.name, region)
	}
	return nil
}

// Prepare creates the cache if it does not exist.
func (Driver) Prepare(ctx context.Context, conn net.Conn, link driver.Link) error {
	c, err := newCodec(link)
	if err != nil {
		return err
	}
	err = driver.Interruptible(ctx, conn, func() error {
		a, err := c.shake(conn)
		if err != nil {
			return err
		}
		status, body, err := a.ask(c.making())
		if err == nil && status != 0 {
			err = said(status, body)
		}
		return err
	})
	switch {
	case err != nil && c.region != "":
		return fmt.Errorf("make cache %q in data region %q, which each node must have: %w", c.name, c.region, err)
	case err != nil:
		return fmt.Errorf("make cache %q: %w", c.name, err)
	}
	return nil
}

// CleanUp destroys a temporary cache that is empty: of the workers that clear it, the last one does.
func (Driver) CleanUp(ctx context.Context, conn net.Conn, link driver.Link) error {
	c, err := newCodec(link)
	if err != nil || !c.temporary {
		return err
	}
	err = driver.Interruptible(ctx, conn, func() error {
		a, err := c.shake(conn)
		if err != nil {
			return err
		}
		status, body, err := a.ask(c.appendSize(nil, 1))
		if err == nil && status == 0 {
			if len(body) != 8 || binary.LittleEndian.Uint64(body) > 0 {
				return nil
			}
			status, body, err = a.ask(ended(binary.LittleEndian.AppendUint32(appendOp(nil, opDestroy, 2), c.cache), 0))
		}
		if err == nil && status != 0 && status != noCache {
			err = said(status, body)
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("destroy cache %q: %w", c.name, err)
	}
	return nil
}

// Properties of a cache.
const (
	propertyName   = 0
	propertyRegion = 100
)

// making returns the request that creates the cache: by its name alone, or with a configuration if the plan names a region.
func (c *codec) making() []byte {
	op := uint16(opGetOrCreate)
	if c.region != "" {
		op = opMake
	}
	b := appendOp(nil, op, 1)
	if c.region == "" {
		return ended(appendObject(b, typeString, c.name), 0)
	}
	at := len(b)
	b = append(b, 0, 0, 0, 0, 2, 0) // the length of the rest, and the number of properties
	b = appendObject(binary.LittleEndian.AppendUint16(b, propertyName), typeString, c.name)
	b = appendObject(binary.LittleEndian.AppendUint16(b, propertyRegion), typeString, c.region)
	return ended(ended(b, at), 0)
}

// said returns the error for a status other than 0.
func said(status uint32, body []byte) error {
	text, _, _ := object(body, typeString)
	return fmt.Errorf("status %d: %s", status, text)
}

// mostAnswer bounds what a server may answer to a question.
const mostAnswer = 1 << 20

// asker asks questions on a connection.
type asker struct{ driver.Asker }

// shake makes the handshake on a new connection.
func (c *codec) shake(conn net.Conn) (*asker, error) {
	a := &asker{driver.Asker{Conn: conn, Most: mostAnswer}}
	if err := a.Greet(c); err != nil {
		return nil, fmt.Errorf("handshake: %w", hungUp(err))
	}
	return a, nil
}

// ask sends a request and returns the status and body of the reply.
func (a *asker) ask(request []byte) (status uint32, body []byte, err error) {
	a.Say(request)
	err = a.Next(func(b []byte) (n int, err error) {
		status, body, n, err = frame(b)
		return n, err
	})
	return status, body, hungUp(err)
}

// hungUp says why a server may have closed the connection.
func hungUp(err error) error {
	if errors.Is(err, driver.ErrHungUp) {
		return fmt.Errorf("%w: is it the port of clientConnectorConfiguration, 10800 unless it is told otherwise?", err)
	}
	return err
}
