// Package files is the driver of a directory on the worker's own machine that holds one value per file.
//
//	verb    what is done                                      reply
//	put     a new file is written and takes the key's place   ok
//	get     the key's file is read                            ok; miss if there is none
//	delete  the key's file is removed                         ok; miss if there is none
//
// # Names
//
// The directory is TARGET-wN.files, where N is the worker's number. It holds 256 subdirectories, 00 to ff, which exist before the load begins. A
// key's subdirectory is the last byte of its CRC-32C, in hex. A file is named after its key: ASCII letters, digits, -, _ and : stand for themselves,
// as does a period that does not come first; every other byte becomes % and two upper-case hex digits. The empty key's file is %. So each key has one
// name, each name one key, and no name leads elsewhere. A key whose name takes more than 255 bytes is an error.
//
// # Durability
//
// A put writes a file beside the key's (its name begins with a comma, which no key's does), makes it durable with fdatasync, renames it over the
// key's, and makes the directory durable with fsync. Then it is ok. A crash leaves the old value or the new one, whole. A delete also ends with an
// fsync of the directory. With sync = "none" it waits for nothing.
package files

import (
	"fmt"
	"math"

	"github.com/loadgen/loadgen/pkg/driver"
	"github.com/loadgen/loadgen/pkg/driver/localfile"
)

// Config is what a target of this driver takes.
type Config struct {
	// Dir is the directory of the files, below the worker's --log-root. It may begin with the path of --log-root itself.
	Dir string `hcl:"dir,optional" json:"dir"`
	// Sync says when a put or delete counts as done: "fdatasync", or "none".
	Sync string `hcl:"sync,optional" json:"sync"`
}

const (
	synced   = "fdatasync"
	unsynced = "none"
)

// Validate says what is wrong with the config.
func (c *Config) Validate() error {
	if c.Sync != synced && c.Sync != unsynced {
		return fmt.Errorf("sync is %q; write %q or %q", c.Sync, synced, unsynced)
	}
	return nil
}

// Driver is the driver, a [localfile.Driver].
type Driver struct{}

var _ localfile.Driver = Driver{}

// Name returns "files".
func (Driver) Name() string { return "files" }

// NewConfig returns a *Config.
func (Driver) NewConfig() any { return &Config{Sync: synced} }

// Outcomes lists how requests can end.
func (Driver) Outcomes(v driver.Verb) []driver.Outcome { return outcomes[v] }

var outcomes = map[driver.Verb][]driver.Outcome{
	driver.Put:    {driver.OK},
	driver.Get:    {driver.OK, driver.Miss},
	driver.Delete: {driver.OK, driver.Miss},
}

// Check implements localfile.Driver: a target takes all verbs.
func (Driver) Check(any, driver.Verb) error { return nil }

const (
	block     = 4096 // the least that a file takes on most file systems
	keyMemory = 192  // bytes kept per key that was put: its name, and facts about its value
)

// Need implements localfile.Driver.
func (Driver) Need(_ any, site localfile.Site) (localfile.Need, error) {
	keys := site.Keys
	if sessions := int64(site.To - site.From); site.Pools {
		if sessions > 0 && keys > math.MaxInt64/sessions {
			return localfile.Need{}, fmt.Errorf("%d keys for each of %d sessions are too many; write a smaller count", keys, sessions)
		}
		keys *= sessions
	}
	each := (int64(site.Value.Size) + block - 1) / block * block
	if keys > math.MaxInt64/max(each, keyMemory) {
		return localfile.Need{}, fmt.Errorf("%d values of %d bytes are more than a disk holds; write fewer or smaller ones", keys, site.Value.Size)
	}
	need := localfile.Need{Memory: keys*keyMemory + int64(site.To-site.From)*2*int64(site.Value.Size)}
	if !site.Held {
		need.Bytes = keys * each
	}
	return need, nil
}
