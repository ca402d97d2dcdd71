package plan

import (
	"errors"
	"fmt"
	"net"
	"path"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/loadgen/loadgen/internal/lang"
	"github.com/loadgen/loadgen/pkg/driver"
	"github.com/loadgen/loadgen/pkg/driver/localfile"
)

// target checks a target.
func (v *validator) target(t *Target) {
	at := part{"target." + t.Name, "target " + lang.Quote(t.Name)}
	v.lasts(at, "timeout", t.Timeout, 1)
	d := driverNamed(v.drivers, t.Driver)
	if d == nil {
		v.fault(fmt.Sprintf("%s: unknown driver %s", at.where, lang.Quote(t.Driver)), lang.Instead(t.Driver, driverNames(v.drivers), "driver = %q"), at.path+".driver")
		return
	}
	v.endpoints(t, d, at)
	v.executor(t, d, at)
	if clustered(t, d) {
		v.cluster(t, at)
	} else {
		v.oneOf(at, "placement", t.Placement, Ketama, Rendezvous)
	}
	if t.Builtin != nil {
		v.builtin(t, d, at.in("builtin"))
	}
	if t.TLS != nil {
		v.tls(t, d, at.in("tls"))
	}
	if t.Replication != nil {
		v.replication(t, at.in("replication"))
	}
	v.config(t, d, at)
}

// cluster checks what a target that is one cannot have beside that.
func (v *validator) cluster(t *Target, at part) {
	if t.Placement != Slots {
		v.fault(fmt.Sprintf("%s: placement = %s of a cluster", at.where, lang.Quote(t.Placement)),
			"Leave placement out: a cluster's nodes have divided the keys themselves.", at.path+".placement")
	}
	if t.Replication != nil {
		v.fault(at.where+": replication of a cluster", "Leave one of them out: a cluster keeps its replicas itself, and a key has one node that takes requests.",
			at.path+".replication")
	}
	if t.Builtin != nil {
		v.fault(at.where+": built-in nodes are no cluster", `Write endpoints = ["HOST:PORT"] of one or more of the cluster's nodes, or leave cluster out.`,
			at.path+".builtin", at.path+".config.cluster")
	}
}

// endpoints checks what a target is reached at.
func (v *validator) endpoints(t *Target, d driver.Driver, at part) {
	place := at.path + ".endpoints"
	switch {
	case len(t.Endpoints) == 0 && t.Builtin == nil:
		v.fault(at.where+": neither endpoints nor builtin", `Write endpoints = ["HOST:PORT"], or builtin { nodes = 1 } to start nodes here.`, place, at.path+".builtin")
	case len(t.Endpoints) > 0 && t.Builtin != nil:
		v.fault(at.where+": both endpoints and builtin", "Write one of them.", place, at.path+".builtin")
	case len(t.Endpoints) > maxEndpoints:
		v.fault(fmt.Sprintf("%s: %d endpoints", at.where, len(t.Endpoints)), fmt.Sprintf("Write at most %d.", maxEndpoints), place)
	}
	_, wire := d.(driver.Wire)
	seen := map[string]bool{}
	for _, e := range t.Endpoints {
		if write, ok := addressOf(e); wire && ok {
			v.fault(at.where+": an endpoint that is a URL, or holds a user or a password", write, place)
			continue
		}
		if err := checkEndpoint(e, wire); err != nil {
			v.fault(fmt.Sprintf("%s: endpoint %s: %v", at.where, lang.Quote(e), err),
				`Write "HOST:PORT", such as "127.0.0.1:6379", or a Unix socket's path, such as "unix:///run/redis.sock".`, place)
		} else if seen[e] {
			v.fault(fmt.Sprintf("%s: endpoint %s stands twice", at.where, lang.Quote(e)), "Write it once.", place)
		}
		seen[e] = true
	}
}

// addressOf says what to write in place of an endpoint in the form of other clients, SCHEME://USER:PASSWORD@HOST:PORT/DATABASE, or a part of that. Its
// text is shown nowhere: it may hold a password.
func addressOf(e string) (write string, ok bool) {
	scheme, rest, isURL := strings.Cut(e, "://")
	if isURL && scheme == "unix" {
		return "", false
	}
	if !isURL {
		scheme, rest = "", e
	}
	at := strings.LastIndexByte(rest, '@')
	if !isURL && at < 0 {
		return "", false
	}
	write = `Write "HOST:PORT"`
	if at >= 0 {
		write += `, and in the target username = "USER" and password = secret("NAME"), with the password in the environment of workers as LOADGEN_SECRET_NAME`
	}
	if scheme == "rediss" || scheme == "valkeys" || scheme == "https" || scheme == "tls" {
		write += ", and tls {}"
	}
	if slash := strings.IndexByte(rest[at+1:], '/'); slash >= 0 && len(rest[at+1:]) > slash+1 {
		write += ", and database = N"
	}
	return write + ".", true
}

// checkEndpoint checks an endpoint's form: host:port with a decimal port, or a socket's path, for a wire, any printable word for another driver.
func checkEndpoint(e string, wire bool) error {
	if e == "" || len(e) > 300 || strings.ContainsFunc(e, func(r rune) bool { return r <= ' ' || r >= 0x7f }) {
		return errors.New("not 1 to 300 printable characters without spaces")
	}
	if !wire {
		return nil
	}
	if strings.HasPrefix(e, "unix:") {
		return checkSocket(e)
	}
	host, port, err := net.SplitHostPort(e)
	if err != nil || host == "" {
		return errors.New("not a host and a port")
	}
	n, err := strconv.ParseUint(port, 10, 16)
	if err != nil || n < 1 || strconv.FormatUint(n, 10) != port {
		return fmt.Errorf("port %s is not a number from 1 to 65535", lang.Quote(port))
	}
	return nil
}

// maxSocket is the longest path that a Unix socket's address holds (unix(7)).
const maxSocket = 107

func checkSocket(e string) error {
	name, ok := SocketPath(e)
	switch {
	case !ok || !path.IsAbs(name) || path.Clean(name) != name || name == "/":
		return errors.New("not unix:// and an absolute path, without . and .. and with single slashes")
	case len(name) > maxSocket:
		return fmt.Errorf("a path of %d bytes, of at most %d", len(name), maxSocket)
	}
	return nil
}

// SocketPath returns the path of the Unix socket that an endpoint names; "" and false when it names a host and a port.
func SocketPath(endpoint string) (name string, ok bool) {
	if name, ok = strings.CutPrefix(endpoint, "unix://"); !ok {
		return "", false
	}
	return name, true
}

func isSocket(endpoint string) bool {
	_, ok := SocketPath(endpoint)
	return ok
}

// builtin checks the built-in nodes asked for.
func (v *validator) builtin(t *Target, d driver.Driver, at part) {
	if w, ok := d.(driver.Wire); !ok || w.Builtin() == "" {
		write := "Write endpoints, or another driver."
		if located(d) {
			write = "Leave builtin out: this driver needs no nodes. Or write endpoints, which are then names and no more."
		}
		v.fault(fmt.Sprintf("%s: no built-in node serves driver %q", at.where, t.Driver), write, at.path, parent(at.path)+".driver")
	}
	v.within(at, "nodes", int64(t.Builtin.Nodes), 1, maxNodes)
	v.holds(at, "memory", t.Builtin.Memory, minNodeMemory, maxNodeMemory)
	if d := t.Builtin.Delay; d < 0 || d > maxNodeDelay {
		v.fault(fmt.Sprintf("%s: delay = %q", at.where, d.String()), "Write a duration from 0s to 1h.", at.path+".delay")
	}
}

// executor checks what carries the target.
func (v *validator) executor(t *Target, d driver.Driver, at part) {
	v.oneOf(at, "executor", t.Executor, EventLoop, Blocking, Thread)
	if _, local := d.(localfile.Driver); local != (t.Executor == Thread) {
		v.fault(fmt.Sprintf("%s: executor %q does not carry driver %q", at.where, t.Executor, t.Driver), "Leave executor out.", at.path+".executor")
		return
	}
	if t.Executor != EventLoop {
		return
	}
	reason := ""
	if t.TLS != nil {
		reason = "TLS"
	} else if _, dials := d.(driver.Dialer); dials {
		reason = "driver " + lang.Quote(t.Driver)
	}
	if reason != "" {
		v.fault(fmt.Sprintf("%s: the event loop does not carry %s", at.where, reason), "Leave executor out.", at.path+".executor")
	}
}

// tls checks how connections are encrypted. The files are not looked at: they are where the load runs.
func (v *validator) tls(t *Target, d driver.Driver, at part) {
	if _, wire := d.(driver.Wire); !wire {
		v.fault(fmt.Sprintf("%s: driver %q has no connection to encrypt", at.where, t.Driver), "Leave tls out.", at.path)
	}
	if t.Builtin != nil {
		v.fault(at.where+": built-in nodes do not speak TLS", `Write endpoints = ["HOST:PORT"], or leave tls out.`, at.path)
	}
	if i := slices.IndexFunc(t.Endpoints, isSocket); i >= 0 {
		v.fault(fmt.Sprintf("%s: endpoint %s is a Unix socket, over which servers speak no TLS", at.where, lang.Quote(t.Endpoints[i])), "Leave tls out: what goes through it stays in this machine.", at.path)
	}
	if (t.TLS.Cert == "") != (t.TLS.Key == "") {
		v.fault(at.where+": cert and key belong together", "Write both paths: a client shows its certificate and proves that it has the key.",
			at.path+".cert", at.path+".key")
	}
	name := t.TLS.ServerName
	odd := func(r rune) bool { return r <= ' ' || r >= 0x7f || r == ':' }
	if len(name) > 253 || net.ParseIP(name) == nil && strings.ContainsFunc(name, odd) {
		v.fault(fmt.Sprintf("%s: server_name = %s is not the name of a host", at.where, lang.Quote(name)),
			`Write the name that stands in the server's certificate, without a port: "cache.example.org".`, at.path+".server_name")
	}
}

// replication checks N, W and R.
func (v *validator) replication(t *Target, at part) {
	p, nodes := t.Replication, len(t.Endpoints)
	if t.Builtin != nil {
		nodes = t.Builtin.Nodes
	}
	n := at.path + ".n"
	if p.Coordinate == "server" {
		v.fault(at.where+`: coordinate = "server" is not supported by this version`, `Use coordinate = "client".`, at.path+".coordinate")
	} else {
		v.oneOf(at, "coordinate", p.Coordinate, "client")
	}
	v.within(at, "n", int64(p.N), 1, maxReplicas)
	if p.N > nodes && p.N <= maxReplicas {
		noun := "endpoints"
		if nodes == 1 {
			noun = "endpoint"
		}
		v.fault(fmt.Sprintf("%s: n = %d on %d %s", at.where, p.N, nodes, noun), fmt.Sprintf("Write n = %d or less, or more endpoints.", nodes),
			n, parent(at.path)+".endpoints", parent(at.path)+".builtin.nodes", parent(at.path)+".builtin")
	}
	for i, k := range []int{p.W, p.R} {
		name := []string{"w", "r"}[i]
		if k < 1 || k > p.N {
			v.fault(fmt.Sprintf("%s: %s = %d with n = %d", at.where, name, k, p.N), fmt.Sprintf("Write a number from 1 to n = %d.", p.N),
				at.path+"."+name, n)
		}
	}
	v.lasts(at, "timeout", p.Timeout, 1)
	v.oneOf(at, "read_fanout", p.ReadFanout, "n", "r")
	v.oneOf(at, "read_from", p.ReadFrom, "first", "random")
}

// config checks the driver's own attributes: their type, what the driver says of them, and the names of secrets.
func (v *validator) config(t *Target, d driver.Driver, at part) {
	if reflect.TypeOf(t.Config) != reflect.TypeOf(d.NewConfig()) {
		v.fault(fmt.Sprintf("%s: the config is not one of driver %q", at.where, t.Driver), "Write the driver's own attributes.", at.path)
		return
	}
	if c, ok := t.Config.(interface{ Validate() error }); ok {
		for _, err := range split(c.Validate()) {
			attribute, _, _ := strings.Cut(err.Error(), " ")
			v.fault(at.where+": "+err.Error(), "", at.path+".config."+attribute)
		}
	}
	if !secretsNamed(reflect.ValueOf(t.Config)) {
		v.fault(at.where+": a secret without a proper name", lang.WriteSecret, at.path+".config")
	}
}

// split takes joined errors apart.
func split(err error) []error {
	if err == nil {
		return nil
	}
	if many, ok := err.(interface{ Unwrap() []error }); ok {
		return many.Unwrap()
	}
	return []error{err}
}

// secretsNamed says whether all secrets in a config have names that secrets may have.
func secretsNamed(v reflect.Value) bool {
	switch v.Kind() {
	case reflect.Pointer, reflect.Interface:
		return v.IsNil() || secretsNamed(v.Elem())
	case reflect.Slice, reflect.Array:
		for i := range v.Len() {
			if !secretsNamed(v.Index(i)) {
				return false
			}
		}
	case reflect.Struct:
		if s, ok := reflect.TypeAssert[driver.Secret](v); ok {
			return s.Name == "" || lang.SecretNames.MatchString(s.Name)
		}
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() && !secretsNamed(v.Field(i)) {
				return false
			}
		}
	}
	return true
}

// checkCondition checks an assert's text by the guard and the parser.
func checkCondition(text string) error {
	if text == "" || len(text) > lang.MaxString {
		return fmt.Errorf("a condition of %d bytes, of 1 to %d", len(text), lang.MaxString)
	}
	if d := lang.Guard([]byte(text), ""); d != nil {
		return errors.New(d.Summary)
	}
	x, diags := hclsyntax.ParseExpression([]byte(text), "", hcl.InitialPos)
	if !diags.HasErrors() {
		diags = lang.CheckSyntax(x)
	}
	if diags.HasErrors() {
		return errors.New(diags[0].Summary)
	}
	return nil
}
