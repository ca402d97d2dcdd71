package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/loadgen/loadgen/internal/load/engine"
	"github.com/loadgen/loadgen/internal/result/quantity"
	"github.com/loadgen/loadgen/internal/target/observe"
	"github.com/loadgen/loadgen/pkg/plan"
)

const (
	answers   = 3 * time.Second // how long a server may take to answer before anything is sent to it
	watched   = time.Second     // how long other clients' commands are counted
	othersMay = 10              // commands per second that other clients may send
	perKey    = 100             // bytes that a server needs for a key besides its value
)

// askable lists, by driver, the figures that show whether a server may be filled.
var askable = map[string][]string{
	"redis":     {"slave_read_only", "cluster_enabled", "used_memory", "maxmemory", "total_commands_processed"},
	"memcached": {"curr_items", "bytes", "limit_maxbytes", "cmd_get", "cmd_set"},
	"postgres":  {"connections", "xact_commit"},
}

// databases is how many of Redis' databases are searched for other keys.
const databases = 16

// guard refuses a server that does not answer, or that should not be loaded. Nothing has been written to it yet.
func (f *quickFlags) guard(ctx context.Context, p *plan.Plan, q *quick) error {
	t := p.Target("server")
	if q.Driver == "web" {
		return f.reach(ctx, t, q)
	}
	o := &plan.Observe{Kind: plan.ObserveServer, Combine: "sum"}
	for _, name := range askable[q.Driver] {
		o.Fields = append(o.Fields, plan.Field{Name: name})
	}
	if q.Driver == "redis" {
		for i := range databases {
			o.Fields = append(o.Fields, plan.Field{Name: fmt.Sprintf("db%d_keys", i)})
		}
	}
	probe := f.means().New(o, t, t.Endpoints)
	defer probe.Close()
	before, err := f.ask(ctx, probe, q)
	if err != nil {
		return err
	}
	if err := q.refuse(before); err != nil || f.shared {
		return err
	}
	began := time.Now()
	select {
	case <-time.After(watched):
	case <-ctx.Done():
		return ctx.Err()
	}
	after, err := f.ask(ctx, probe, q)
	if err != nil {
		return err
	}
	return q.others(before, after, time.Since(began))
}

// reach checks that a web server answers a GET, whatever the answer is.
func (f *quickFlags) reach(ctx context.Context, t *plan.Target, q *quick) error {
	ctx, cancel := context.WithTimeout(ctx, answers)
	defer cancel()
	conn, err := f.dial(ctx, t)
	if err != nil {
		return failed("web server at %s: %w", q.at, err)
	}
	defer conn.Close()
	get, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+q.at+q.get, http.NoBody)
	if err != nil {
		return err
	}
	get.Close = true
	end, _ := ctx.Deadline()
	err = conn.SetDeadline(end)
	if err == nil {
		err = get.Write(conn)
	}
	if err == nil {
		_, err = http.ReadResponse(bufio.NewReader(conn), get) // the body goes with the connection
	}
	if err != nil {
		return failed("web server at %s: GET %s: %w", q.at, q.get, err)
	}
	return nil
}

func (f *quickFlags) dial(ctx context.Context, t *plan.Target) (net.Conn, error) {
	return engine.Dial(ctx, t, t.Endpoints[0], f.loops.open(), f.loops.secrets.allow(false))
}

// ask reads a server's figures. Those that it does not report are missing.
func (f *quickFlags) ask(ctx context.Context, probe observe.Probe, q *quick) (map[string]float64, error) {
	ctx, cancel := context.WithTimeout(ctx, answers)
	defer cancel()
	told, missing := probe.Take(ctx)
	if why := missing[""]; why != "" {
		remedy := ""
		if lower := strings.ToLower(why); !q.Secret && (strings.Contains(lower, "auth") || strings.Contains(lower, "password")) {
			remedy = ": if it wants a password, set LOADGEN_SECRET_TARGET or use --password-file"
		}
		return nil, failed("%s at %s: %s%s", q.Driver, q.at, strings.TrimPrefix(why, q.at+": "), remedy)
	}
	return told, nil
}

// refuse returns why a server should not be filled, or nil.
func (q *quick) refuse(told map[string]float64) error {
	if _, replica := told["slave_read_only"]; replica {
		return failed("%s is a replica: load its primary, and read from this one by a plan", q.at)
	}
	if told["cluster_enabled"] > 0 {
		return failed("%s is a node of a cluster: load all of it by a plan with cluster = true (docs/plans.md)", q.at)
	}
	room, limited := told["maxmemory"]-told["used_memory"], told["maxmemory"] > 0
	if q.Driver == "memcached" {
		room, limited = told["limit_maxbytes"]-told["bytes"], told["limit_maxbytes"] > 0
	}
	if need := float64(q.Keys) * float64(q.bytes+perKey); limited && need > room {
		return failed("%s has %s of memory left for keys, and %d keys of %d bytes take about %s: use %s",
			q.at, quantity.Bytes(int64(max(room, 0))), q.Keys, q.bytes, quantity.Bytes(int64(need)), q.fewer())
	}
	return nil
}

// fewer says which flags fill a server less.
func (q *quick) fewer() string {
	if q.Fillings != nil {
		return "a smaller --sample, or a smaller --value"
	}
	return "fewer --keys, or a smaller --size"
}

// others returns an error if a server holds other keys, or if other clients use it.
func (q *quick) others(before, after map[string]float64, within time.Duration) error {
	const remedy = ": if it may be loaded all the same, add --shared. Its keys stay as they are, but whoever uses it will notice"
	keys := after["curr_items"]
	for i := range databases {
		keys += after[fmt.Sprintf("db%d_keys", i)]
	}
	if keys > 0 {
		return failed("%s holds %s already%s", q.at, quantity.Count(int(keys), "key"), remedy)
	}
	const own = 5 // the most commands and transactions of our own questions
	more := -float64(own)
	for _, name := range []string{"total_commands_processed", "cmd_get", "cmd_set", "xact_commit"} {
		more += after[name] - before[name]
	}
	if more > othersMay*within.Seconds() {
		return failed("others use %s: it carried out %.0f commands in a second%s", q.at, more/within.Seconds(), remedy)
	}
	if len(after) == 0 {
		return errors.New("it tells nothing of itself" + remedy)
	}
	return nil
}
