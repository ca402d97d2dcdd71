package engine

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/loadgen/loadgen/internal/run"
	"github.com/loadgen/loadgen/pkg/driver"
)

// slowClient takes a time for each request, or until its context ends, after which it is of no use.
type slowClient struct {
	takes time.Duration
	used  *atomic.Int64
}

func (c slowClient) Do(ctx context.Context, _ *driver.Request, _ *driver.Reply) error {
	c.used.Add(1)
	select {
	case <-time.After(c.takes):
		return ctx.Err()
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (c slowClient) Close() error { return nil }

// TestRequestsThatWaitTooLongCostNoClient hands eight requests at a time to a client that carries out two within their timeout. The others time out;
// the one that the client was at work on then takes the client with it, those that still waited do not.
func TestRequestsThatWaitTooLongCostNoClient(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := nullPlan(t, 1, onBlocking+`timeout = "25ms"`, "ops = { get = 1 }\nclosed {\n sessions = 1\n iterations = 80\n pipeline = 8\n}")
		b := newPipedBench(t, redisPlan(t, 1, "", "ops = { get = 1 }\nclosed {\n sessions = 1\n iterations = 1\n}"), "load", 0)
		b.g.plan, b.g.phase, b.g.target = p, p.Phase("load"), p.Target("t")
		var dials, used atomic.Int64
		tr := &blocking{
			l: b.l, endpoints: b.g.endpoints[:1], limit: backlog, timeout: b.g.target.Timeout,
			dial: func(context.Context, int) (driver.Session, error) {
				dials.Add(1)
				return slowClient{10 * time.Millisecond, &used}, nil
			},
		}
		b.l.tr.close()
		b.l.tr = tr
		defer tr.close()
		require.NoError(t, tr.open(b.l.clock.now()+int64(time.Second)))
		get := b.run(run.Load).Ops[driver.Get]
		require.Positive(t, get.Outcomes[driver.OK])
		require.Equal(t, get.Due, get.Outcomes[driver.OK]+get.Outcomes[driver.Timeout]+get.Outcomes[driver.Error])
		require.LessOrEqual(t, used.Load(), int64(get.Outcomes[driver.OK])+dials.Load(), "one request for each client is its last")
		require.Less(t, dials.Load(), int64(get.Outcomes[driver.Timeout])/2)
	})
}
