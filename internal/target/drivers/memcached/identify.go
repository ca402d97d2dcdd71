package memcached

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"

	"github.com/loadgen/loadgen/pkg/driver"
)

// maxIdentity bounds everything a server may send to Identify; a real one sends about 5 KiB.
const maxIdentity = 1 << 20

// questions are asked after the greeting. Each has the lines of its answer that matter to a measurement. reqs_per_event is how many requests of one
// connection the server carries out before it turns to another.
var questions = [...]struct {
	ask    string
	fields []string
}{
	{"stats", []string{"pid", "threads", "limit_maxbytes"}},
	{"stats settings", []string{"maxconns", "reqs_per_event", "item_size_max", "evictions", "lru_segmented", "cas_enabled"}},
}

// Identify greets the server and sends stats and stats settings. The result holds "server" (memcached, loadgen) and "version", and those other
// figures that the server reveals; a "note" says why they are missing otherwise. It returns soon after ctx is cancelled.
func (Driver) Identify(ctx context.Context, conn net.Conn, link driver.Link) (map[string]string, error) {
	cfg, err := check(link.Config)
	if err != nil {
		return nil, err
	}
	greet := greetMeta
	if cfg.Protocol == textProtocol {
		greet = greetText
	}
	var id map[string]string
	err = driver.Interruptible(ctx, conn, func() (err error) {
		if id, err = identify(conn, greet); err == nil && errors.Is(ctx.Err(), context.Canceled) {
			err = ctx.Err()
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("ask memcached what it is: %w", err)
	}
	return id, nil
}

// identify greets and waits for the answers before it asks: a proxy that closes the connection on a question would discard them.
func identify(conn net.Conn, greet func(*driver.Asker, map[string]string) error) (map[string]string, error) {
	in := &driver.Asker{Conn: conn, Most: maxIdentity}
	id := map[string]string{"server": "memcached"}
	if err := greet(in, id); err != nil {
		return nil, err
	}
	if id[driver.Note] != "" {
		return id, nil
	}
	for _, q := range questions {
		stats, err := ask(in, q.ask)
		if err == nil && len(stats) == 0 && q.ask == "stats" {
			err = errors.New("server tells nothing")
		}
		if err != nil && (q.ask == "stats" || !errors.Is(err, errRefuses)) {
			id[driver.Note] = fmt.Sprintf("the server says nothing of itself: %s: %v", q.ask, err)
			break
		}
		describe(id, stats, q.fields)
		if is := instance(stats, conn.LocalAddr(), conn.RemoteAddr()); is != "" {
			id["instance"] = is
		}
	}
	return id, nil
}

// instance returns a text that differs between the memcached servers on the client's own machine: process id, start time and port. On other machines
// these may be equal, since containers that are started together have the same process id.
func instance(stats map[string]string, from, to net.Addr) string {
	local, _ := from.(*net.TCPAddr)
	remote, tcp := to.(*net.TCPAddr)
	now, err := strconv.ParseInt(stats["time"], 10, 64)
	up, err2 := strconv.ParseInt(stats["uptime"], 10, 64)
	if !tcp || local == nil || err != nil || err2 != nil || stats["pid"] == "" || !remote.IP.IsLoopback() && !remote.IP.Equal(local.IP) {
		return ""
	}
	return fmt.Sprintf("pid %s, started %d, port %d of this machine", stats["pid"], now-up, remote.Port)
}

// greetMeta sends the greeting of a codec for the meta commands.
func greetMeta(in *driver.Asker, id map[string]string) error {
	hello, _ := codec{}.Greet(nil)
	in.Say(hello)
	for i, g := range greetings {
		var rest string
		err := in.Next(func(b []byte) (n int, err error) {
			n, rest, err = parseGreeting(b, i)
			return n, err
		})
		switch {
		case errors.Is(err, driver.ErrHungUp) && g.want == "MN":
			return fmt.Errorf("%s: %w: it may be a proxy that does not know the meta commands, as twemproxy: it must be memcached 1.6.10 or newer, or write protocol = \"text\"", g.ask, err)
		case err != nil:
			return fmt.Errorf("%s: %w", g.ask, err)
		case g.want == "VERSION" && rest != "":
			id["version"] = rest
		}
	}
	return nil
}

// greetText asks for the version. A proxy may not know the command, and close the connection.
func greetText(in *driver.Asker, id map[string]string) error {
	var line []byte
	in.Say([]byte("version\r\n"))
	err := in.Next(func(b []byte) (n int, err error) {
		line, n, err = readLine(b)
		return n, err
	})
	word, version, _ := strings.Cut(string(line), " ")
	switch {
	case errors.Is(err, driver.ErrHungUp):
		id[driver.Note] = fmt.Sprintf("the server says nothing of itself: version: %v: it may be a proxy, or speak TLS at this port", err)
	case err != nil:
		return fmt.Errorf("version: %w", err)
	case word == "VERSION" && version != "":
		id["version"] = version
	case word != "VERSION" && !isError([]byte(word)):
		return fmt.Errorf("version: want VERSION, got %s", quote(line))
	}
	return nil
}

// ask asks for stats.
func ask(in *driver.Asker, question string) (stats map[string]string, err error) {
	in.Say(append([]byte(question), "\r\n"...))
	err = in.Next(func(b []byte) (n int, err error) {
		stats, n, err = readStats(b)
		return n, err
	})
	return stats, err
}

// describe adds what bears on a measurement. Servers other than memcached identify themselves in server_name, and give their own version beside the
// one that memcached's clients ask for.
func describe(id, stats map[string]string, fields []string) {
	if name := stats["server_name"]; name != "" {
		id["server"] = name
	}
	if version := stats[id["server"]+"_version"]; version != "" {
		id["version"] = version
	}
	for _, name := range fields {
		if value, ok := stats[name]; ok {
			id[name] = value
		}
	}
}
