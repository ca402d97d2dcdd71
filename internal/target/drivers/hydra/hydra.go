// Package hydra speaks to the servers of Hydra Cache, in its states of 2009 and of 2011: HTTP/1.1 on the event loop.
//
//	verb    request                          reply                              outcome
//	get     GET /{key}                       200                                ok, with the value
//	get     GET /{key}                       404                                miss
//	put     PUT /{key}, a frame its body     200, 201                           ok; without a body, the version is the one sent, plus 1
//	put     PUT /{key}                       409                                conflict
//	delete  DELETE /{key}                    200                                ok, whether it was there or not
//	any                                      500 "Not enough members …"         quorum_failed, with its answers
//	any                                      any other                          error, with the words of a 500, or the status
//
// A frame is a value with its version in front, all integers big-endian:
//
//	+----------+----------+-----------+-----------------+------------+---------+------------+-------
//	| 5 int16  | 1 int8   | 100 int16 | address len, 4  | address 4B | port 2B | counter 8B | value
//	+----------+----------+-----------+-----------------+------------+---------+------------+-------
//
// # Versions
//
// A put must carry the key's current version, which replies to puts and gets state, and is a conflict otherwise. The null version, 127.0.0.1:0 and 0,
// means that the key does not exist. Like the original client, each session remembers the version of each key from the replies that it got, also when
// a connection is lost or a reply comes late. If the reply to a put is lost, the session keeps the version that it knew, as after a conflict or a
// failed quorum: the server may have stored the value, and further puts of the key are then conflicts until a get has fetched its version. Several
// puts of a key that a session sends before the first is answered carry the same version, and all but one are conflicts. At the beginning of a phase,
// sessions know no versions.
//
// # Keys
//
// A session does not know the version of a key that an earlier run has put. So keys begin with 8 hexadecimal digits that identify the run, and "-",
// unless the plan says fresh = false. (The original test drew random keys.)
//
// The servers do not decode the request's target. Bytes that would end the key or be cut off (controls, space, "/", "?", "#", "%" and everything
// outside ASCII) are sent as %XX, which then is part of the key. So is the first letter of the keys registry, storage and dump: the servers use these
// paths for other answers, so a value under them could not be read.
package hydra

import (
	"crypto/md5"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"strconv"
	"time"

	"github.com/loadgen/loadgen/pkg/driver"
)

// Driver is the hydra driver. Its zero value is ready to use.
type Driver struct{}

var (
	_ driver.Replicator = Driver{}
	_ driver.IdleCloser = Driver{}
	_ driver.Cluster    = Driver{}
	_ driver.Discoverer = (*Config)(nil)
)

// Config holds what a hydra target takes beside the common attributes.
type Config struct {
	Points  int           `hcl:"points,optional" json:"points"`             // number of points of each server on the ring: 1, as in 2011, or 20
	Ready   time.Duration `hcl:"ready,optional" json:"ready_ns"`            // the time that the servers may take to list each other
	Fresh   bool          `hcl:"fresh,optional" json:"fresh"`               // keys begin with digits that identify the run
	Cluster bool          `hcl:"cluster,optional" json:"cluster,omitempty"` // the servers are those that an endpoint lists
}

const (
	defaultReady = 20 * time.Second
	mostReady    = 25 * time.Second // less than a coordinator waits for a worker

	mostKept = 4 << 20
	portsEnd = 1 << 15 // versions hold a port in an int16
)

// Validate says what is wrong and what to write instead.
func (c *Config) Validate() error {
	if c.Points != 1 && c.Points != 20 {
		return fmt.Errorf("points = %d: write 1, as clients of 2011 have it, or 20, as the test kit of 2009", c.Points)
	}
	if c.Ready < 0 || c.Ready > mostReady {
		return fmt.Errorf("ready = %q: write a duration from 0s to %v", c.Ready, mostReady)
	}
	return nil
}

// Discovers implements driver.Discoverer.
func (c *Config) Discovers() bool { return c.Cluster }

// Name returns "hydra".
func (Driver) Name() string { return "hydra" }

// NewConfig returns a *Config: one point for each server, 20 s for them to list each other, and keys that no other run uses.
func (Driver) NewConfig() any { return &Config{Points: 1, Ready: defaultReady, Fresh: true} }

// Outcomes says that a get can miss and a put conflict, that a delete does neither, and that each can fail its quorum.
func (Driver) Outcomes(v driver.Verb) []driver.Outcome { return outcomes[v] }

var outcomes = map[driver.Verb][]driver.Outcome{
	driver.Get:    {driver.OK, driver.Miss, driver.QuorumFailed},
	driver.Put:    {driver.OK, driver.Conflict, driver.QuorumFailed},
	driver.Delete: {driver.OK, driver.QuorumFailed},
}

// Builtin returns "hydra".
func (Driver) Builtin() string { return "hydra" }

// NewCodec returns a codec that keeps the versions by session.
func (Driver) NewCodec(link driver.Link) (driver.Codec, error) {
	cfg, err := check(link.Config)
	if err != nil {
		return nil, err
	}
	c := &codec{sessions: map[int]versions{}}
	if cfg.Fresh {
		c.prefix = fmt.Sprintf("%08x-", point(link.Run))
	}
	return c, nil
}

// IdleTimeout implements driver.IdleCloser: the servers close connections that are idle for 3 s.
func (Driver) IdleTimeout() time.Duration { return 2500 * time.Millisecond }

// Points implements driver.Replicator.
func (Driver) Points(config any, address string) []uint32 {
	cfg, err := check(config)
	if err != nil || cfg.Points == 1 {
		return []uint32{point(address)}
	}
	points := make([]uint32, cfg.Points)
	for i := range points {
		points[i] = point(address + "-" + strconv.Itoa(i+1))
	}
	return points
}

func point(text string) uint32 {
	sum := md5.Sum([]byte(text))
	return binary.LittleEndian.Uint32(sum[:])
}

// Patience implements driver.Replicator.
func (Driver) Patience(config any) time.Duration {
	cfg, err := check(config)
	if err != nil {
		return 0
	}
	return cfg.Ready
}

// Timeout implements driver.Replicator: a miss, or a put while a server is gone, takes a server 1 s, for which other connections of the same thread wait.
func (Driver) Timeout() time.Duration { return 10 * time.Second }

// Builds implements driver.Replicator.
func (Driver) Builds() []string { return []string{"2009-04-03", "2009-04-08", "2011"} }

// MostKept implements driver.Replicator.
func (Driver) MostKept() int64 { return mostKept }

// CheckAddress implements driver.Replicator.
func (Driver) CheckAddress(address string) error {
	host, port, err := net.SplitHostPort(address)
	if err != nil || net.ParseIP(host) == nil {
		return errors.New("write IP:PORT, as the servers' /registry lists it: keys are placed by that")
	}
	if n, err := strconv.Atoi(port); err == nil && n >= portsEnd {
		return fmt.Errorf("start the server on a port below %d: versions of Hydra Cache hold no larger one", portsEnd)
	}
	return nil
}

func check(config any) (*Config, error) { return driver.ConfigOf[*Config]("hydra", config) }
