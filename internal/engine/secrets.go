package engine

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"reflect"

	"github.com/loadgen/loadgen/pkg/driver"
)

// Allow says whether a secret may go to where a connection leads: an address, or the path of a Unix socket. Nil: all may go anywhere.
type Allow func(secret string, to netip.AddrPort, socket string) error

// allowance returns what checks a connection of a target before anything is said on it; nil where there is nothing to check: no secret, or no bounds.
func (e *Engine) allowance(config any) func(to netip.AddrPort, socket string) error {
	names := secretsOf(reflect.ValueOf(config))
	if e.cfg.Allow == nil || len(names) == 0 {
		return nil
	}
	return func(to netip.AddrPort, socket string) error {
		for _, name := range names {
			if err := e.cfg.Allow(name, to, socket); err != nil {
				return fmt.Errorf("secret %q: %w", name, err)
			}
		}
		return nil
	}
}

// secretsOf lists the secrets that a driver's config names.
func secretsOf(v reflect.Value) (names []string) {
	switch v.Kind() {
	case reflect.Pointer, reflect.Interface:
		if !v.IsNil() {
			return secretsOf(v.Elem())
		}
	case reflect.Slice, reflect.Array:
		for i := range v.Len() {
			names = append(names, secretsOf(v.Index(i))...)
		}
	case reflect.Struct:
		if s, ok := reflect.TypeAssert[driver.Secret](v); ok {
			return []string{s.Name}
		}
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				names = append(names, secretsOf(v.Field(i))...)
			}
		}
	}
	return names
}

// led returns where a connection leads.
func led(conn net.Conn) (to netip.AddrPort, socket string, err error) {
	switch at := conn.RemoteAddr().(type) {
	case *net.TCPAddr:
		to := at.AddrPort()
		return netip.AddrPortFrom(to.Addr().Unmap(), to.Port()), "", nil
	case *net.UnixAddr:
		return netip.AddrPort{}, at.Name, nil
	}
	return to, "", errors.New("where this connection leads cannot be told")
}

// admit checks where a connection leads, and closes one that may not get what the target's config names.
func (c connector) admit(conn net.Conn) error {
	if c.allow == nil {
		return nil
	}
	to, socket, err := led(conn)
	if err == nil {
		err = c.allow(to, socket)
	}
	if err != nil {
		_ = conn.Close() // nothing has been said on it
	}
	return err
}

// admits is admit for an endpoint of an event loop, whose address is known.
func (c connector) admits(end *endpoint) error {
	if c.allow == nil {
		return nil
	}
	return c.allow(netip.AddrPortFrom(end.addr.Addr().Unmap(), end.addr.Port()), end.path)
}

// secretsFor are those of a client that makes its connections itself: where they lead is not seen here, so it gets none that is bound.
func (e *Engine) secretsFor() driver.Secrets {
	if e.cfg.Allow == nil {
		return e.cfg.Secrets
	}
	return func(name string) (string, error) {
		if err := e.cfg.Allow(name, netip.AddrPort{}, ""); err != nil {
			return "", fmt.Errorf("secret %q: %w", name, err)
		}
		return e.cfg.Secrets(name)
	}
}
