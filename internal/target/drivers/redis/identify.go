package redis

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"

	"github.com/loadgen/loadgen/pkg/driver"
)

// maxIdentity bounds everything a server may send to Identify; a real INFO takes about 6 KiB.
const maxIdentity = 1 << 20

// infoFields are the lines of INFO that bear on a measurement.
var infoFields = [...]string{
	"redis_mode", "role", "maxmemory", "maxmemory_policy", "io_threads_active", "aof_enabled", "process_id",
}

// configFields are the settings that INFO does not show. They are requested one by one, since CONFIG GET * would also return passwords. A server may
// refuse.
var configFields = [...]string{"save", "appendfsync", "io-threads"}

// Identify greets the server and sends INFO and CONFIG GET. The result holds "server" (redis, valkey, loadgen, …) and "version", and those other
// settings that the server reveals. A server that accepts the greeting but reveals nothing is as good for a load: the result then holds a "note" that
// says why nothing is known. It returns soon after ctx is cancelled.
func (d Driver) Identify(ctx context.Context, conn net.Conn, link driver.Link) (map[string]string, error) {
	c, err := d.NewCodec(link)
	if err != nil {
		return nil, err
	}
	asks, err := newAsks(link)
	if err != nil {
		return nil, err
	}
	var id map[string]string
	err = driver.Interruptible(ctx, conn, func() (err error) {
		if id, err = identify(conn, c, &asks, link); err == nil && errors.Is(ctx.Err(), context.Canceled) {
			err = ctx.Err()
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("ask redis what it is: %w", err)
	}
	return id, nil
}

// identify greets and waits for the answers before it asks: a proxy that closes the connection on a question would discard them.
func identify(conn net.Conn, c driver.Codec, asks *asks, link driver.Link) (map[string]string, error) {
	in := newAsker(conn)
	if err := in.Greet(c); err != nil {
		return nil, err
	}
	for _, f := range link.Forms {
		if err := asks[f.Verb].describe(in); err != nil {
			return nil, fmt.Errorf("op %q: %w", f.Name, err)
		}
	}
	if link.Batch || deaf(in) {
		err := answersEach(in)
		switch {
		case errors.Is(err, errLeavesOut) && deaf(in):
			return nil, fmt.Errorf("this is Ignite: use driver = \"ignite\" with the node's client connector, endpoints = [%q] unless its clientConnectorConfiguration has another port; by RESP it changes values that are not text, and answers every DEL as if the key had been there",
				clientConnector(link.Endpoint))
		case link.Batch && err != nil:
			return nil, err
		}
	}
	id, err := readInfo(in)
	if err != nil {
		return map[string]string{driver.Note: fmt.Sprintf("the server says nothing of itself: INFO: %v", err)}, nil
	}
	if id["redis_mode"] == "sentinel" {
		return nil, errors.New("it is a Sentinel, which holds no keys: write the endpoint of the server that it watches (redis-cli -p PORT SENTINEL MASTERS names it), or sentinel { master = \"NAME\" } in the target")
	}
	for _, name := range configFields {
		if err := readSetting(in, name, id); err != nil {
			id[driver.Note] = fmt.Sprintf("the server says nothing of its settings: CONFIG GET %s: %v", name, err)
			break
		}
	}
	return id, nil
}

// answersEach sends MGET for keys that do not exist, to check that the answer has a value for each.
func answersEach(in *asker) error {
	keys := []string{"{loadgen:nobody}:1", "{loadgen:nobody}:2"} // in the same slot of a cluster
	head, err := in.ask(append([]string{"MGET"}, keys...)...)
	if err != nil {
		return err
	}
	if head.kind != array {
		return nil // an error, such as NOPERM or MOVED, says nothing about how it answers
	}
	for range head.elements() {
		if _, err := in.value(); err != nil {
			return err
		}
	}
	if n := head.elements(); n != int64(len(keys)) {
		return leavesOut(len(keys), n)
	}
	return nil
}

// deaf sends PING with a word, and reports whether the server does not repeat it. Ignite is such a server, on its port for REST and RESP.
func deaf(in *asker) bool {
	word, err := in.ask("PING", "loadgen")
	return err == nil && word.kind == status && string(word.text) == "PONG"
}

// clientConnector returns the address for Ignite's own clients, if the node at an endpoint has the usual port.
func clientConnector(endpoint string) string {
	host, _, err := net.SplitHostPort(endpoint)
	if err != nil {
		host = endpoint
	}
	return net.JoinHostPort(host, "10800")
}

// readInfo sends INFO.
func readInfo(in *asker) (map[string]string, error) {
	info, err := in.ask("INFO")
	switch {
	case err != nil:
		return nil, err
	case info.kind == errorReply:
		return nil, fmt.Errorf("server says %s", printable(info.text))
	case info.kind != bulk:
		return nil, fmt.Errorf("want a text, server says %q", printable(info.text))
	}
	return describe(parseInfo(string(info.text))), nil
}

// describe sends COMMAND INFO for the command of a form, to check that the server has it and that the number of words is right. If a server cannot
// describe commands, errors appear only under load.
func (a *ask) describe(in *asker) error {
	if a.whole {
		return nil // the trace says which commands there are
	}
	name := a.args[0].String()
	in.Say(AppendCommand(nil, "COMMAND", "INFO", name))
	unknown, arity, flags := false, int64(0), []string(nil)
	err := in.Next(func(b []byte) (int, error) {
		head, at, err := readReply(b)
		if at == 0 || err != nil || head.elements() == 0 {
			return at, err
		}
		whole, _, err := through(b, at, head.elements(), readReply)
		if whole == 0 || err != nil {
			return 0, err
		}
		unknown, arity, flags = described(b[at:whole])
		return whole, nil
	})
	if err != nil {
		return err
	}
	if unknown {
		return fmt.Errorf("the server has no command %s: write one that it has, or start a server that has it", strings.ToUpper(name))
	}
	if why := a.facts(arity, flags); why != "" {
		return fmt.Errorf("command %s: %s", strings.ToUpper(name), why)
	}
	return nil
}

// described reads the first entry of COMMAND INFO: whether the command is unknown, and its arity and flags.
func described(b []byte) (unknown bool, arity int64, flags []string) {
	next := func() (r reply) {
		r, n, _ := readReply(b)
		b = b[n:]
		return r
	}
	entry := next()
	if entry.missing() {
		return true, 0, nil
	}
	if entry.elements() < 3 {
		return false, 0, nil
	}
	next() // the command's name
	arity = next().integer
	all := next()
	for range all.elements() {
		flag := next()
		flags = append(flags, string(flag.text))
	}
	return false, arity, flags
}

// parseInfo returns the name:value lines of an INFO reply.
func parseInfo(text string) map[string]string {
	fields := make(map[string]string)
	for line := range strings.Lines(text) {
		if name, value, found := strings.Cut(strings.TrimRight(line, "\r\n"), ":"); found {
			fields[name] = value
		}
	}
	return fields
}

// describe picks what bears on a measurement. Servers other than Redis identify themselves in server_name and give their own version beside the Redis
// version they are compatible with.
func describe(info map[string]string) map[string]string {
	id := map[string]string{"server": "redis", "version": info["redis_version"]}
	if name := info["server_name"]; name != "" {
		id["server"] = name
	}
	if version := info[id["server"]+"_version"]; version != "" {
		id["version"] = version
	}
	if run := info["run_id"]; run != "" {
		id["instance"] = "run_id " + run
	}
	for _, name := range infoFields {
		if value, ok := info[name]; ok {
			id[name] = value
		}
	}
	return id
}

// readSetting sends CONFIG GET. The reply is a map; or an array of name and value, empty for a setting the server lacks; or an error if the server
// refuses.
func readSetting(in *asker, name string, id map[string]string) error {
	head, err := in.ask("CONFIG", "GET", name)
	if err != nil {
		return err
	}
	if head.kind == errorReply {
		return nil
	}
	if head.kind != array && head.kind != mapping || head.elements()%2 != 0 {
		return errors.New("reply is not an array of names and values")
	}
	for range head.elements() / 2 {
		key, err := in.value()
		if err != nil {
			return err
		}
		found := string(key.text) == name
		value, err := in.value()
		if err != nil {
			return err
		}
		if found {
			id[name] = string(value.text)
		}
	}
	return nil
}

// asker reads replies, at most maxIdentity bytes to a question.
type asker struct{ driver.Asker }

func newAsker(conn net.Conn) *asker {
	return &asker{driver.Asker{Conn: conn, Most: maxIdentity}}
}

// ask sends a command, and reads the first value of the reply.
func (a *asker) ask(command ...string) (reply, error) {
	a.Say(AppendCommand(nil, command...))
	return a.value()
}

// value reads the next value.
func (a *asker) value() (v reply, err error) {
	err = a.Next(func(b []byte) (n int, err error) {
		v, n, err = readReply(b)
		return n, err
	})
	return v, err
}
