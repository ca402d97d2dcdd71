package command

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/loadgen/loadgen/internal/base/quantity"
	"github.com/loadgen/loadgen/internal/load/engine"
	"github.com/loadgen/loadgen/internal/target/drivers/web"
	"github.com/loadgen/loadgen/internal/target/observe"
	"github.com/loadgen/loadgen/internal/target/servers"
	"github.com/loadgen/loadgen/pkg/plan"
)

const (
	answers   = 3 * time.Second // how long a server may take to answer before anything is sent to it
	watched   = time.Second     // how long other clients' commands are counted
	othersMay = 10              // commands per second that other clients may send
	perKey    = 100             // bytes that a server needs for a key besides its value
)

// databases is how many of Redis' databases are searched for other keys.
const databases = 16

// guard refuses a server that does not answer, or that should not be loaded. Nothing has been written to it yet.
func (f *quickFlags) guard(ctx context.Context, p *plan.Plan, q *quick) error {
	t := p.Target("server")
	q.bytes = int64(p.Datasets[0].Values.Size)
	if q.Driver == "web" {
		return f.explain(ctx, t, q, f.reach(ctx, t, q))
	}
	o := &plan.Observe{Kind: plan.ObserveServer, Combine: "sum"}
	of := servers.Of(q.Driver)
	names := slices.Concat(of.Ask, of.Carried)
	if before, after, several := strings.Cut(of.Items, "*"); several {
		for i := range databases {
			names = append(names, before+strconv.Itoa(i)+after)
		}
	}
	for _, name := range names {
		o.Fields = append(o.Fields, plan.Field{Name: name})
	}
	probe := f.means().New(o, t, t.Endpoints)
	defer probe.Close()
	before, err := f.ask(ctx, probe, q)
	if err != nil {
		return f.explain(ctx, t, q, err)
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

// asFlags are remedies of plans, as flags say them.
var asFlags = strings.NewReplacer(`write driver = "web", or tls {} in the target`, "leave --http2 out, or write https://", "write the driver of what it speaks", "leave --http2 out",
	`tls { ca = "PATH" }`, "--ca PATH", `tls { server_name = "NAME" }`, "it in the address", "tls { insecure = true }", "--insecure",
	`cert = "PATH" and key = "PATH" in tls { … }`, "them in a plan (docs/plans.md#tls)")

// explain says in the words of flags what to do about an error of asking a server, and which kind of server seems to answer.
func (f *quickFlags) explain(ctx context.Context, t *plan.Target, q *quick, err error) error {
	if err == nil {
		return nil
	}
	of, text := servers.Of(q.Driver).Schemes, asFlags.Replace(err.Error())
	own := slices.IndexFunc(of, func(s servers.Scheme) bool { return s.TLS == q.TLS })
	heard := f.hear(ctx, t)
	for _, g := range greetings {
		if strings.HasPrefix(heard, g.begins) && (own < 0 || !strings.Contains(g.write, of[own].Name+"://")) {
			return failed("%s: it seems to be %s that answers there: write %s", text, g.is, g.write)
		}
	}
	return failed("%s", text)
}

// greetings are the beginnings of answers to hear's line.
var greetings = []struct{ begins, is, write string }{
	{"+", "Redis", "redis://"},
	{"-", "Redis", "redis://"},
	{"ERROR", "memcached", "memcached://"},
	{"HTTP/", "a web server", "http://"},
	{"<", "a web server", "http://"},
	{"\x15\x03", "a server that speaks TLS", "rediss:// or https://"},
}

// hear returns the beginning of what a server answers to a line that most take for a command of theirs, or say that it is none; "" if it does not answer.
func (f *quickFlags) hear(ctx context.Context, t *plan.Target) string {
	ctx, cancel := context.WithTimeout(ctx, watched)
	defer cancel()
	plain := *t
	plain.TLS = nil
	conn, err := f.dial(ctx, &plain)
	if err != nil {
		return ""
	}
	defer conn.Close()
	end, _ := ctx.Deadline()
	b := make([]byte, 16)
	n := 0
	if err = conn.SetDeadline(end); err == nil {
		if _, err = io.WriteString(conn, "PING\r\n"); err == nil {
			n, _ = conn.Read(b) // an error means that it says nothing more
		}
	}
	return string(b[:n])
}

// reach checks that a web server answers a request with what was asked for.
func (f *quickFlags) reach(ctx context.Context, t *plan.Target, q *quick) error {
	ctx, cancel := context.WithTimeout(ctx, answers)
	defer cancel()
	var protocols []string
	if f.http2 {
		protocols = []string{web.HTTP2{}.ALPN()}
	}
	conn, err := f.dial(ctx, t, protocols...)
	if err != nil {
		return failed("web server at %s: %w", q.at, err)
	}
	defer conn.Close()
	get, err := http.NewRequestWithContext(ctx, f.verb(), "http://"+q.at+q.get, strings.NewReader(q.body))
	if err != nil {
		return err
	}
	get.Close = true
	if q.TLS {
		get.URL.Scheme = "https"
	}
	for _, text := range f.headers {
		name, value, _ := strings.Cut(text, ":")
		get.Header.Add(strings.TrimSpace(name), strings.TrimSpace(value))
	}
	if host := get.Header.Get("Host"); host != "" {
		get.Host = host
	}
	if q.Secret {
		get.Header.Set("Authorization", os.Getenv("LOADGEN_SECRET_TARGET"))
	}
	end, _ := ctx.Deadline()
	err = conn.SetDeadline(end)
	var page *http.Response
	if err == nil && f.http2 {
		page, err = web.RoundTrip(conn, get)
	} else if err == nil {
		err = get.Write(conn)
	}
	if err == nil && page == nil {
		page, err = http.ReadResponse(bufio.NewReader(conn), get) // the body goes with the connection
	}
	if err == nil && page.StatusCode/100 != 2 {
		err = fmt.Errorf("the server says %s: this would be the speed of that answer; give the address of a page that is there", page.Status)
	}
	if err != nil {
		return failed("web server at %s: %s %s: %s", q.at, f.verb(), q.get, asFlags.Replace(err.Error()))
	}
	return nil
}

func (f *quickFlags) dial(ctx context.Context, t *plan.Target, protocols ...string) (net.Conn, error) {
	return engine.Dial(ctx, t, t.Endpoints[0], f.loops.open(), f.loops.secrets.allow(false), protocols...)
}

// ask reads a server's figures. Those that it does not report are missing.
func (f *quickFlags) ask(ctx context.Context, probe observe.Probe, q *quick) (map[string]float64, error) {
	ctx, cancel := context.WithTimeout(ctx, answers)
	defer cancel()
	told, missing := probe.Take(ctx)
	if why := missing[""]; why != "" {
		why = strings.TrimPrefix(why, q.at+": ")
		if strings.HasSuffix(why, "i/o timeout") { // of the connection, whose deadline is the same
			why = "no answer in time"
		}
		switch lower := strings.ToLower(why); {
		case !q.Secret && (strings.Contains(lower, "auth") || strings.Contains(lower, "password")):
			why, _, _ = strings.Cut(why, " (write ") // which says what to do in a plan
			why = strings.TrimSuffix(why, ".") + ": if it needs a password, set LOADGEN_SECRET_TARGET or use --password-file"
		}
		return nil, failed("%s at %s: %s", q.Driver, q.at, why)
	}
	return told, nil
}

// refuse returns why a server should not be filled, or nil.
func (q *quick) refuse(told map[string]float64) error {
	if _, replica := told["slave_read_only"]; replica {
		if q.Fillings != nil {
			return failed("%s is a replica: write the address of its primary", q.at)
		}
		return failed("%s is a replica: load its primary, and read from this one by a plan", q.at)
	}
	if told["cluster_enabled"] > 0 {
		if q.Fillings != nil {
			return failed("%s is a node of a cluster: fill all of it by a plan with cluster = true, and observe the sum (docs/size.md#in-a-plan)", q.at)
		}
		return failed("%s is a node of a cluster: load all of it by a plan with cluster = true (docs/plans.md)", q.at)
	}
	_, asked := told["TotalServerNodes"]
	_, sized := told["TotalUsedSize"]
	switch {
	case q.Driver != "ignite":
	case asked && !sized:
		return failed("%s has no data region %s: write the name of one that it has, as in ignite://HOST/REGION", q.at, cmp.Or(q.Database, `"default"`))
	case !sized:
		return failed("%s does not say how much of its data region is in use: put ignite-indexing on the node's class path (from libs/optional to libs), or observe its process (docs/size.md#other-servers)", q.at)
	case told["TotalServerNodes"] > 1:
		return failed("%s is one of %.0f nodes, and reports only its own memory: fill all of them by a plan, and observe the sum (docs/size.md#in-a-plan)", q.at, told["TotalServerNodes"])
	}
	of := servers.Of(q.Driver)
	if q.Fillings != nil && of.Table && told[of.Memory] == 0 { // at least its table of keys takes memory
		return failed("%s does not say how much memory it uses (%s): observe its process instead (docs/size.md#other-servers)", q.at, of.Memory)
	}
	limit, room := told[of.Limit], told[of.Limit]-told[of.Memory]
	if need := float64(q.Keys) * float64(q.bytes+perKey); limit > 0 && need > room {
		return failed("%s has %s of memory left for keys, and %d keys of %d bytes take about %s: use %s",
			q.at, quantity.Bytes(int64(max(room, 0))), q.Keys, q.bytes, quantity.Bytes(int64(need)), q.fewer(room))
	}
	return nil
}

// fewer says which flags fill a server less, so that it has room.
func (q *quick) fewer(room float64) string {
	if q.Fillings == nil {
		return "fewer --keys, or a smaller --size"
	}
	fit := int64(0.8 * room / float64(q.bytes+perKey))
	if fit < leastSample {
		return "a smaller --value, or a server with more memory"
	}
	digits := int64(1)
	for fit/digits >= 100 {
		digits *= 10
	}
	return fmt.Sprintf("--sample %d, or a smaller --value", fit/digits*digits)
}

// alone returns what to do if the server is not this command's alone.
func (q *quick) alone() string {
	if q.Fillings != nil {
		return "the memory of these items could not be told from other memory: write the address of an empty server that nobody uses, such as one started for this"
	}
	return "if it may be loaded all the same, add --shared. Its keys stay as they are, but whoever uses it will notice"
}

// others returns an error if a server holds other keys, or if other clients use it.
func (q *quick) others(before, after map[string]float64, within time.Duration) error {
	remedy := ": " + q.alone()
	of, keys := servers.Of(q.Driver), 0.0
	for name, n := range after {
		if counts, err := path.Match(of.Items, name); err == nil && counts {
			keys += n
		}
	}
	if keys > 0 {
		return failed("%s holds %s already%s", q.at, quantity.Count(int(keys), "key"), remedy)
	}
	const own = 5 // the most commands and transactions of our own questions
	more := -float64(own)
	for _, name := range of.Carried {
		more += after[name] - before[name]
	}
	if more > othersMay*within.Seconds() {
		return failed("others use %s: it carried out %.0f commands in a second%s", q.at, more/within.Seconds(), remedy)
	}
	if grown := after["TotalUsedSize"] - before["TotalUsedSize"]; grown != 0 {
		return failed("others use %s: its data region grew by %.0f bytes in a second%s", q.at, grown, remedy)
	}
	if len(after) == 0 {
		return errors.New("it reports nothing about itself" + remedy)
	}
	return nil
}
