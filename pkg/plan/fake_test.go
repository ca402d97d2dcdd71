package plan_test

import (
	"context"
	"errors"
	"net"
	"time"

	"github.com/loadgen/loadgen/pkg/driver"
)

// fakeConfig has one attribute of each kind that drivers have.
type fakeConfig struct {
	Password *driver.Secret `hcl:"password,optional" json:"password"`
	Database int            `hcl:"database,optional" json:"database"`
	Delay    time.Duration  `hcl:"delay,optional" json:"delay_ns"`
	Prefix   string         `hcl:"prefix,optional" json:"prefix"`
	Proxy    *fakeProxy     `hcl:"proxy,block" json:"proxy"`
}

type fakeProxy struct {
	Name string `hcl:"name" json:"name"`
}

func (c *fakeConfig) Validate() error {
	var errs []error
	if c.Database < 0 {
		errs = append(errs, errors.New("database is negative: write a number from 0"))
	}
	if c.Prefix == "bad" {
		errs = append(errs, errors.New(`prefix is "bad": write another`))
	}
	return errors.Join(errs...)
}

// fakeWire is a driver with a wire and built-in nodes.
type fakeWire struct{ name, builtin string }

func (d fakeWire) Name() string    { return d.name }
func (d fakeWire) Builtin() string { return d.builtin }
func (d fakeWire) NewConfig() any  { return &fakeConfig{Delay: time.Millisecond} }

func (d fakeWire) Outcomes(v driver.Verb) []driver.Outcome {
	if v == driver.Delete && d.builtin == "" {
		return nil
	}
	return []driver.Outcome{driver.OK, driver.Miss}
}

func (fakeWire) NewCodec(any, driver.Secrets) (driver.Codec, error) {
	return nil, errors.New("not in these tests")
}

func (fakeWire) Identify(context.Context, net.Conn, any, driver.Secrets) (map[string]string, error) {
	return nil, errors.New("not in these tests")
}

// fakeTimed is a driver without a transport and without attributes.
type fakeTimed struct{}

func (fakeTimed) Name() string                                            { return "null" }
func (fakeTimed) NewConfig() any                                          { return new(struct{}) }
func (fakeTimed) Outcomes(driver.Verb) []driver.Outcome                   { return []driver.Outcome{driver.OK} }
func (fakeTimed) Reply(any, *driver.Request, *driver.Reply) time.Duration { return 0 }

// drivers are those of all tests: redis has built-in nodes, plain has none and cannot delete, null has no transport.
func drivers() []driver.Driver {
	return []driver.Driver{fakeWire{"redis", "resp"}, fakeWire{"plain", ""}, fakeTimed{}}
}
