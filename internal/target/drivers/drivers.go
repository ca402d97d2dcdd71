// Package drivers lists the drivers of every loadgen, and says which a program has and where those of its own come from.
package drivers

import (
	"errors"
	"fmt"
	"regexp"

	"github.com/loadgen/loadgen/internal/target/drivers/files"
	"github.com/loadgen/loadgen/internal/target/drivers/hydra"
	"github.com/loadgen/loadgen/internal/target/drivers/ignite"
	"github.com/loadgen/loadgen/internal/target/drivers/log"
	"github.com/loadgen/loadgen/internal/target/drivers/memcached"
	"github.com/loadgen/loadgen/internal/target/drivers/null"
	"github.com/loadgen/loadgen/internal/target/drivers/postgres"
	"github.com/loadgen/loadgen/internal/target/drivers/redis"
	"github.com/loadgen/loadgen/internal/target/drivers/web"
	"github.com/loadgen/loadgen/pkg/driver"
)

// All returns every driver, in the order of help texts and pages.
func All() []driver.Driver {
	return []driver.Driver{redis.Driver{}, memcached.Driver{}, web.Driver{}, web.HTTP2{}, postgres.Driver{}, hydra.Driver{}, ignite.Driver{}, log.Driver{}, files.Driver{}, null.Driver{}}
}

// Set is the drivers of a program.
type Set struct {
	All []driver.Driver // those of every loadgen, then the program's own
	own int             // how many of them are its own
}

// Stock returns the set of a program without drivers of its own.
func Stock() *Set { return &Set{All: All()} }

// With returns the drivers of every loadgen and a program's own. No two may have one name.
func With(own ...driver.Driver) (*Set, error) {
	s := &Set{All: append(All(), own...), own: len(own)}
	for i, d := range s.All {
		if d == nil {
			return nil, errors.New("loadgen.Main: a driver is nil")
		}
		if name := d.Name(); !named.MatchString(name) {
			return nil, fmt.Errorf("loadgen.Main: %T is called %q: let Name return lower-case letters, digits and _, a letter first", d, name)
		}
		for _, other := range s.All[:i] {
			if other.Name() == d.Name() {
				return nil, fmt.Errorf("loadgen.Main: %T and %T are both called %q: let Name of one return another word", other, d, d.Name())
			}
		}
	}
	return s, nil
}

// named matches the names that plans can spell.
var named = regexp.MustCompile(`^[a-z][a-z0-9_]*$`)

// Names returns the words for drivers in plans.
func (s *Set) Names() []string {
	var names []string
	for _, d := range s.All {
		names = append(names, d.Name())
	}
	return names
}

// Protocol returns the protocol that built-in cache nodes must speak to serve a driver.
func (s *Set) Protocol(name string) (string, error) {
	for _, d := range s.All {
		if w, ok := d.(driver.Wire); ok && d.Name() == name {
			return w.Builtin(), nil
		}
	}
	return "", fmt.Errorf("driver %q is not in this build, or nothing on a wire", name)
}
