// Package drivers lists the drivers this build of loadgen has. Adding one means adding it here.
package drivers

import (
	"github.com/loadgen/loadgen/internal/drivers/log"
	"github.com/loadgen/loadgen/internal/drivers/memcached"
	"github.com/loadgen/loadgen/internal/drivers/null"
	"github.com/loadgen/loadgen/internal/drivers/redis"
	"github.com/loadgen/loadgen/pkg/driver"
)

// All returns every driver, in the order of help texts and pages.
func All() []driver.Driver {
	return []driver.Driver{redis.Driver{}, memcached.Driver{}, log.Driver{}, null.Driver{}}
}
