// Package memcached speaks to memcached and to compatible servers and proxies, with the meta commands of the text protocol or with its classic ones.
//
// # Meta commands
//
// A get is mg with the flag v, a put is ms, a delete is md. Keys are 1 to 250 bytes without spaces or control characters, as in every plan. A
// connection begins with mn and version, so that servers older than 1.6.10, which know no meta commands or an earlier form of them, are refused
// before any load is sent.
//
//	verb    reply                outcome
//	get     VA size … value      ok, with the value
//	get     EN                   miss
//	put     HD                   ok
//	put     NS, EX, NF           error, with words for the code
//	delete  HD                   ok
//	delete  NF                   miss
//	delete  NS, EX               error, with words for the code
//	any     ERROR                error, with the line
//	any     CLIENT_ERROR words   error, with the line
//	any     SERVER_ERROR words   error, with the line
//
// A request with several keys is one command per key, written together: no meta command takes more than one.
//
// Flags after a code are ignored: a server adds some unasked, W and X for an item that another client marked stale. Anything else is not an answer to
// the request. The stream of replies can then no longer be trusted, and Parse returns an error.
//
// # Classic commands
//
// A get is get, or gets if the plan asks for the items' CAS uniques; a put is set with client flags of 0; a delete is delete. Nothing is sent with
// noreply: requests without answers cannot be counted. A connection begins with the first request, since proxies close the connection on commands
// that they do not know.
//
//	verb    reply                        outcome
//	get     VALUE key flags size … END   ok, with the value
//	get     END                          miss
//	put     STORED                       ok
//	put     NOT_STORED, EXISTS,          error, with words for it
//	        NOT_FOUND
//	delete  DELETED                      ok
//	delete  NOT_FOUND                    miss
//	any     ERROR and the like           error, with the line
//
// A get of several keys is one command, whose reply holds the values that exist; a put of several keys is one set per key.
//
// The formats are those of https://github.com/memcached/memcached/blob/master/doc/protocol.txt.
package memcached

import (
	"errors"
	"fmt"
	"time"

	"github.com/loadgen/loadgen/pkg/driver"
)

// Driver is the memcached driver. Its zero value is ready to use.
type Driver struct{}

var (
	_ driver.Wire    = Driver{}
	_ driver.Expirer = Driver{}
	_ driver.Batcher = Driver{}
)

// Config holds what a memcached target takes beside the common attributes.
type Config struct {
	Protocol string `hcl:"protocol,optional" json:"protocol,omitempty"` // metaProtocol (also if "") or textProtocol
	CAS      bool   `hcl:"cas,optional" json:"cas,omitempty"`           // gets are sent as the command gets
}

const (
	metaProtocol = "meta"
	textProtocol = "text"
)

// Validate says what is wrong and what to write instead.
func (c *Config) Validate() error {
	switch {
	case c.Protocol != "" && c.Protocol != metaProtocol && c.Protocol != textProtocol:
		return fmt.Errorf(`protocol = %q: write "meta" for the meta commands, or "text" for get, set and delete`, c.Protocol)
	case c.CAS && c.Protocol != textProtocol:
		return errors.New(`cas = true reads with gets, a classic command: write protocol = "text" beside it, or leave it out`)
	}
	return nil
}

// Name returns "memcached".
func (Driver) Name() string { return "memcached" }

// NewConfig returns a *Config.
func (Driver) NewConfig() any { return new(Config) }

// Outcomes says that a get and a delete can miss and that a put cannot. A put with a token can conflict, if the item has changed.
func (Driver) Outcomes(v driver.Verb) []driver.Outcome { return outcomes[v] }

var outcomes = map[driver.Verb][]driver.Outcome{
	driver.Get:    {driver.OK, driver.Miss},
	driver.Delete: {driver.OK, driver.Miss},
	driver.Put:    {driver.OK, driver.Conflict},
}

// CheckTTL implements driver.Expirer: the protocol counts whole seconds.
func (Driver) CheckTTL(ttl time.Duration) error {
	if ttl%time.Second != 0 {
		return fmt.Errorf("memcached counts whole seconds: write %q", ttl.Truncate(time.Second)+time.Second)
	}
	return nil
}

// CheckBatch implements driver.Batcher. If a command ends in a later TLS record than it began in, memcached 1.6 ignores the commands after it until
// more bytes come, so a batch must fit in one record.
func (Driver) CheckBatch(_ any, v driver.Verb, b driver.Batch) error {
	const record, line = 16 << 10, 300
	each := line
	if v == driver.Put {
		each += b.Bytes
	}
	if b.TLS && b.Keys*each > record {
		return fmt.Errorf("memcached over TLS reads no more than %d bytes of commands at a time, and %d keys can take %d: write a smaller batch", record, b.Keys, b.Keys*each)
	}
	return nil
}

// Builtin returns "memcached".
func (Driver) Builtin() string { return "memcached" }

// NewCodec returns a codec for the protocol of the link's *Config.
func (Driver) NewCodec(link driver.Link) (driver.Codec, error) {
	cfg, err := check(link.Config)
	if err != nil {
		return nil, err
	}
	if cfg.Protocol == textProtocol {
		return newTextCodec(cfg.CAS), nil
	}
	return codec{}, nil
}

func check(config any) (*Config, error) { return driver.ConfigOf[*Config]("memcached", config) }
