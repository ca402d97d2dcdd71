// Package etcd drives etcd's key space through its own client, one per endpoint and slot.
package etcd

import (
	"context"
	"net"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"google.golang.org/grpc"

	"github.com/loadgen/loadgen/pkg/driver"
)

// Driver is the driver.
type Driver struct{}

// Config has the attributes of a target.
type Config struct {
	// Serializable lets any member answer a get from what it has.
	Serializable bool `hcl:"serializable,optional" json:"serializable"`
}

var _ driver.Dialer = Driver{}

func (Driver) Name() string   { return "etcd" }
func (Driver) NewConfig() any { return new(Config) }
func (Driver) Outcomes(v driver.Verb) []driver.Outcome {
	switch v {
	case driver.Get, driver.Delete:
		return []driver.Outcome{driver.OK, driver.Miss}
	case driver.Put:
		return []driver.Outcome{driver.OK}
	}
	return nil
}

func (Driver) Dial(ctx context.Context, link driver.Link) (driver.Session, error) {
	wait := 2 * time.Second
	if deadline, ok := ctx.Deadline(); ok {
		wait = min(wait, time.Until(deadline))
	}
	c, err := clientv3.New(clientv3.Config{
		Endpoints: []string{link.Endpoint}, Logger: zap.NewNop(), MaxUnaryRetries: 1,
		DialTimeout: wait,
		DialOptions: []grpc.DialOption{
			grpc.WithBlock(),
			grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) {
				return link.Dial(ctx)
			}), grpc.WithReturnConnectionError(),
		},
	})
	if err != nil {
		return nil, err
	}
	s := &session{c: c}
	if link.Config.(*Config).Serializable {
		s.get = append(s.get, clientv3.WithSerializable())
	}
	return s, nil
}

type session struct {
	c   *clientv3.Client
	get []clientv3.OpOption
	val []byte
}

func (s *session) Do(ctx context.Context, req *driver.Request, reply *driver.Reply) error {
	*reply = driver.Reply{}
	switch req.Verb {
	case driver.Get:
		r, err := s.c.Get(ctx, string(req.Key), s.get...)
		if err != nil {
			return err
		}
		if len(r.Kvs) == 0 {
			reply.Outcome = driver.Miss
		} else {
			reply.Value = r.Kvs[0].Value
		}
	case driver.Put:
		s.val = req.Value.AppendTo(s.val[:0])
		_, err := s.c.Put(ctx, string(req.Key), string(s.val))
		return err
	case driver.Delete:
		r, err := s.c.Delete(ctx, string(req.Key))
		if err != nil {
			return err
		}
		if r.Deleted == 0 {
			reply.Outcome = driver.Miss
		}
	}
	return nil
}

func (s *session) Close() error { return s.c.Close() }
