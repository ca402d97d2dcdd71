// Package drivers lists the drivers of this build of loadgen. To add a driver, add it here.
package drivers

import (
	"fmt"

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
	return []driver.Driver{redis.Driver{}, memcached.Driver{}, web.Driver{}, postgres.Driver{}, hydra.Driver{}, ignite.Driver{}, log.Driver{}, files.Driver{}, null.Driver{}}
}

// Protocol returns the protocol that built-in cache nodes must speak to serve a driver.
func Protocol(name string) (string, error) {
	for _, d := range All() {
		if w, ok := d.(driver.Wire); ok && d.Name() == name {
			return w.Builtin(), nil
		}
	}
	return "", fmt.Errorf("driver %q is not in this build, or nothing on a wire", name)
}
