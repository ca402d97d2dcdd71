// Package redis speaks to Redis and to compatible servers, in RESP2 or RESP3.
//
// A get is GET, a put is SET, a delete is DEL with one key; with several keys, a get is MGET and a put MSET. A connection begins with AUTH, CLIENT
// SETNAME and SELECT if the target asks for them, in RESP3 with HELLO instead of the first two, and always with PING. The answers show, before any
// load is sent, that a server is not Redis, needs a password, or is still loading its data. A server that accepts the greeting but does not identify
// itself is loaded nevertheless.
//
// # Replies
//
//	verb    reply            outcome
//	get     $n … bulk        ok, with the value
//	get     $-1, _, *-1      miss
//	put     +OK              ok, or with wait the reply to a WAIT, too:
//	        :n               ok if n replicas are enough, else quorum_failed
//	mget    *n … elements    ok or miss for each, as for a get
//	mset    +OK              ok for each
//	delete  :1               ok
//	delete  :0, $-1, _, *-1  miss
//	any     -words           error, with the words
//
//	commands that a plan words itself:
//	null             miss, unless the plan expects otherwise
//	:0               miss for a delete, unless the plan expects otherwise
//	of any kind      ok, unless the plan expects otherwise; aggregates are read whole, however deep
//	an error within  error, with the words of the first one
//
// Anything else is not an answer to the request. The stream of replies can then no longer be trusted, and Parse returns an error. The format is the
// one of https://redis.io/docs/latest/develop/reference/protocol-spec/. In RESP3 a server may send data unasked: push messages between replies, and
// attributes before one. They are read whole and skipped.
package redis

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/loadgen/loadgen/pkg/driver"
)

// Driver is the redis driver. Its zero value is ready to use.
type Driver struct{}

var (
	_ driver.Wire    = Driver{}
	_ driver.Expirer = Driver{}
	_ driver.Batcher = Driver{}
)

// Config holds what a redis target takes beside the common attributes.
type Config struct {
	// Protocol is the version of RESP, 2 or 3.
	Protocol int `hcl:"protocol,optional" json:"protocol"`
	// Username is the ACL user; empty for the default user.
	Username string `hcl:"username,optional" json:"username"`
	// Password authenticates every connection; nil if the server needs none.
	Password *driver.Secret `hcl:"password,optional" json:"password"`
	// Database is the number given to SELECT, ≥ 0.
	Database int `hcl:"database,optional" json:"database"`
	// ClientName is the name of every connection in CLIENT LIST; "" for none.
	ClientName string `hcl:"client_name,optional" json:"client_name"`
	// Cluster says that the servers are nodes of a Redis Cluster.
	Cluster bool `hcl:"cluster,optional" json:"cluster"`
	// Sentinel says that the servers are Sentinels; nil if they are not.
	Sentinel *Sentinel `hcl:"sentinel,block" json:"sentinel,omitempty"`
	// Read says which nodes answer gets: "master" or "replica".
	Read string `hcl:"read,optional" json:"read,omitempty"`
	// Wait makes puts wait for replicas; nil if they do not.
	Wait *Wait `hcl:"wait,block" json:"wait,omitempty"`
}

// Validate reports every attribute with which no connection could be opened.
func (c *Config) Validate() error {
	var errs []error
	if c.Protocol != 2 && c.Protocol != 3 {
		errs = append(errs, fmt.Errorf("protocol = %d: write 2, or 3 for RESP3, which Redis knows from version 6 on", c.Protocol))
	}
	if c.Username != "" && c.Password == nil {
		errs = append(errs, errors.New(`username is set without password: write password = secret("NAME"), or leave username out`))
	}
	if c.Database < 0 {
		errs = append(errs, fmt.Errorf("database = %d: write a number from 0 up to what the server holds (Redis: 15)", c.Database))
	}
	if c.Cluster && c.Database > 0 {
		errs = append(errs, fmt.Errorf("database = %d of a cluster: leave it out, a cluster has none but 0", c.Database))
	}
	if len(c.ClientName) > maxName || strings.ContainsFunc(c.ClientName, func(r rune) bool { return r <= ' ' || r >= 0x7f }) {
		errs = append(errs, fmt.Errorf("client_name = %q: write at most %d printable ASCII characters without spaces", c.ClientName, maxName))
	}
	if c.Sentinel != nil {
		errs = append(errs, c.Sentinel.validate()...)
		if c.Cluster {
			errs = append(errs, errors.New("cluster with sentinel: leave one of them out, a cluster has no Sentinels"))
		}
	}
	if c.Read != "" && c.Read != fromMaster && c.Read != fromReplica {
		errs = append(errs, fmt.Errorf("read = %q: write %q or %q: what gets ask", c.Read, fromMaster, fromReplica))
	}
	if c.Wait != nil {
		errs = append(errs, c.Wait.validate()...)
	}
	return errors.Join(errs...)
}

// maxName bounds a client's name.
const maxName = 256

// Name returns "redis".
func (Driver) Name() string { return "redis" }

// NewConfig returns a *Config: RESP2, no password, database 0.
func (Driver) NewConfig() any { return &Config{Protocol: 2} }

// Outcomes says that a get and a delete can miss, and that a put cannot, but can have too few copies.
func (Driver) Outcomes(v driver.Verb) []driver.Outcome { return outcomes[v] }

var outcomes = map[driver.Verb][]driver.Outcome{
	driver.Get:    {driver.OK, driver.Miss},
	driver.Delete: {driver.OK, driver.Miss},
	driver.Put:    {driver.OK, driver.QuorumFailed},
}

// CheckTTL implements driver.Expirer: every TTL is valid.
func (Driver) CheckTTL(time.Duration) error { return nil }

// CheckBatch implements driver.Batcher: MSET takes no TTL.
func (Driver) CheckBatch(config any, v driver.Verb, b driver.Batch) error {
	cfg, ok := config.(*Config)
	switch {
	case ok && cfg.Cluster:
		return errors.New("a cluster takes several keys in a request only where all are of one hash slot: leave batch out of the phase")
	case ok && (cfg.Sentinel != nil || cfg.Read == fromReplica):
		return errors.New("with sentinel or replicas, a request has one key: leave batch out of the phase")
	case ok && cfg.Wait != nil && v == driver.Put:
		return errors.New("wait is for one put at a time: leave batch out of the phase, or wait out of the target")
	}
	if v == driver.Put && b.TTL > 0 {
		return errors.New("MSET, which puts several keys, takes no TTL: leave ttl out of the dataset, or batch out of the phase")
	}
	return nil
}

// Builtin returns "resp".
func (Driver) Builtin() string { return "resp" }

// NewCodec returns a codec that greets as the link's *Config says. The secret is looked up here.
func (Driver) NewCodec(link driver.Link) (driver.Codec, error) {
	cfg, err := driver.ConfigOf[*Config]("redis", link.Config)
	if err != nil {
		return nil, err
	}
	password, err := link.Secret(cfg.Password)
	if err != nil {
		return nil, fmt.Errorf("password of redis: %w", err)
	}
	asks, err := newAsks(link)
	if err != nil {
		return nil, fmt.Errorf("redis: %w", err)
	}
	c := codec{greeting: newGreeting(cfg, password, asks.scripts()...), cluster: cfg.Cluster, pushes: cfg.Protocol == 3, read: readValue}
	if c.pushes {
		c.read = readReply
	}
	var speaks dialect = &c
	if len(link.Forms) > 0 {
		speaks = &worded{c, asks}
	}
	if cfg.Wait != nil {
		return cfg.Wait.waits(speaks, c.read), nil
	}
	return speaks, nil
}
