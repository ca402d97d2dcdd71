// Package ignite speaks the thin client protocol of Apache Ignite, version 1.2.0, to the port of a node's client connector. All nodes of a cluster take
// all keys.
//
// All integers are little-endian. A connection begins with a handshake: length, 1, the version, 2 for a thin client and, if the plan has them, user and
// password. After that, requests and replies are
//
//	+-----------+-------+-------+-------------+---------+----------
//	| length 4B | op 2B | id 8B | cache id 4B | flags 0 | objects      a request
//	+-----------+-------+-------+-------------+---------+----------
//
//	+-----------+-------+-----------+----------
//	| length 4B | id 8B | status 4B | objects                          a reply
//	+-----------+-------+-----------+----------
//
// The length counts the bytes after it. Replies come in any order. The cache's id is its name's hashCode in Java. A key is a string, 9, its length
// and its bytes in UTF-8; a value a byte array, 12, its length and its bytes.
//
//	verb           op                  objects of the reply   outcome
//	get            1000 get            a byte array           ok, with the value
//	                                   101 (null)             miss
//	                                   any other              error: loadgen has not put that
//	put            1001 put                                   ok
//	delete         1016 remove key     1                      ok
//	                                   0                      miss
//	several gets   1003 get all        count, keys, values    ok for each value; misses are left out
//	several puts   1004 put all                               ok
//	any            any                 status above 0         error, with the server's words
package ignite

import (
	"errors"
	"fmt"
	"hash/maphash"
	"strings"
	"unicode/utf16"

	"github.com/loadgen/loadgen/pkg/driver"
)

// Driver is the ignite driver. Its zero value is ready to use.
type Driver struct{}

var (
	_ driver.Batcher    = Driver{}
	_ driver.Informant  = Driver{}
	_ driver.Identifier = Driver{}
	_ driver.Cleaner    = Driver{}
)

// Config holds what an ignite target takes beside the common attributes.
type Config struct {
	CacheName string         `hcl:"cache_name,optional" json:"cache_name"`         // created with the cluster's defaults if it does not exist
	Region    string         `hcl:"region,optional" json:"region"`                 // the data region of a cache that the driver creates; "" for the cluster's default
	Temporary bool           `hcl:"temporary,optional" json:"temporary,omitempty"` // destroyed after a completed clear phase, if it is empty
	User      string         `hcl:"user,optional" json:"user"`                     // "" for none
	Password  *driver.Secret `hcl:"password,optional" json:"password,omitempty"`
}

const defaultCache = "loadgen"

// Validate says what is wrong and what to write instead.
func (c *Config) Validate() error {
	var errs []error
	if c.CacheName == "" || strings.ContainsFunc(c.CacheName, func(r rune) bool { return r < ' ' }) {
		errs = append(errs, fmt.Errorf(`cache_name = %q: write the name of a cache, or leave it out for %q`, c.CacheName, defaultCache))
	}
	if strings.ContainsFunc(c.Region, func(r rune) bool { return r < ' ' }) {
		errs = append(errs, fmt.Errorf(`region = %q: write the name of a data region of the cluster, or leave it out for the default one`, c.Region))
	}
	if (c.User == "") != (c.Password == nil) {
		errs = append(errs, errors.New(`user and password belong together: write user = "ignite" and password = secret("NAME"), or neither`))
	}
	return errors.Join(errs...)
}

// Name returns "ignite".
func (Driver) Name() string { return "ignite" }

// NewConfig returns a *Config: the cache "loadgen", and no user.
func (Driver) NewConfig() any { return &Config{CacheName: defaultCache} }

// Outcomes says that a get and a delete can miss, and that a put cannot.
func (Driver) Outcomes(v driver.Verb) []driver.Outcome { return outcomes[v] }

var outcomes = map[driver.Verb][]driver.Outcome{
	driver.Get:    {driver.OK, driver.Miss},
	driver.Delete: {driver.OK, driver.Miss},
	driver.Put:    {driver.OK},
}

// CheckBatch implements driver.Batcher: gets and puts may have any number of keys.
func (Driver) CheckBatch(any, driver.Verb, driver.Batch) error { return nil }

// Builtin returns "": no built-in node speaks the protocol.
func (Driver) Builtin() string { return "" }

// NewCodec returns a codec for the cache of the link's *Config. The secret is looked up here.
func (Driver) NewCodec(link driver.Link) (driver.Codec, error) { return newCodec(link) }

func newCodec(link driver.Link) (*codec, error) {
	cfg, err := driver.ConfigOf[*Config]("ignite", link.Config)
	if err != nil {
		return nil, err
	}
	c := &codec{cache: hashCode(cfg.CacheName), name: cfg.CacheName, region: cfg.Region, temporary: cfg.Temporary, user: cfg.User, seed: maphash.MakeSeed(), repeats: map[uint32][]uint64{}}
	if c.password, err = link.Secret(cfg.Password); err != nil {
		return nil, fmt.Errorf("password of ignite: %w", err)
	}
	return c, nil
}

// hashCode returns the hashCode of a string in Java.
func hashCode(text string) (h uint32) {
	for _, unit := range utf16.Encode([]rune(text)) {
		h = 31*h + uint32(unit)
	}
	return h
}
