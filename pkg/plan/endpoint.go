package plan

import (
	"errors"
	"fmt"
	"net"
	"path"
	"reflect"
	"strconv"
	"strings"

	"github.com/loadgen/loadgen/internal/plan/dialect"
	"github.com/loadgen/loadgen/pkg/driver"
)

// endpoints checks a target's endpoints.
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
	connected := connects(d)
	seen := map[string]bool{}
	for _, e := range t.Endpoints {
		if connected && !strings.HasPrefix(e, "unix:") && strings.ContainsAny(e, "/?#@") { // it may hold a password, which must not be shown
			v.fault(at.where+": an endpoint that is a URL, or holds a user, a password or a path", insteadOfURL(e, d), place)
			continue
		}
		if err := checkEndpoint(e, connected); err != nil {
			v.fault(fmt.Sprintf("%s: endpoint %s: %v", at.where, dialect.Quote(e), err),
				`Write "HOST:PORT", such as "127.0.0.1:6379", or a Unix socket's path, such as "unix:///run/redis.sock".`, place)
		} else if err := unfit(d, e); err != nil {
			v.fault(fmt.Sprintf("%s: endpoint %s: %v", at.where, dialect.Quote(e), err), "", place)
		} else if seen[e] {
			v.fault(fmt.Sprintf("%s: endpoint %s is there twice", at.where, dialect.Quote(e)), "Write it once.", place)
		}
		seen[e] = true
	}
}

// unfit returns why no server of a driver can be at an endpoint.
func unfit(d driver.Driver, endpoint string) error {
	if r, ok := d.(driver.Replicator); ok {
		return r.CheckAddress(endpoint)
	}
	return nil
}

// insteadOfURL says what to write instead of a URL, by the names of the driver's arguments for its parts.
func insteadOfURL(e string, d driver.Driver) string {
	scheme, rest, ok := strings.Cut(e, "://")
	if !ok {
		scheme, rest = "", e
	}
	has := fieldTypes(reflect.TypeOf(d.NewConfig()))
	write := `Write "HOST:PORT"`
	at := strings.LastIndexByte(rest, '@')
	if at >= 0 {
		var words []string
		for _, word := range []struct{ name, text string }{
			{"username", `username = "USER"`},
			{"user", `user = "USER"`},
			{"password", `password = secret("NAME")`},
			{"authorization", `authorization = secret("NAME")`},
		} {
			if has[word.name] != nil {
				words = append(words, word.text)
			}
		}
		if len(words) > 0 {
			write += ", and in the target " + strings.Join(words, " and ") + ", with the secret in the environment of workers as LOADGEN_SECRET_NAME"
		} else {
			write += ", without a user and a password, for which driver " + dialect.Quote(d.Name()) + " has no words"
		}
	}
	if scheme == "rediss" || scheme == "valkeys" || scheme == "https" || scheme == "tls" {
		write += ", and tls {}"
	}
	if slash := strings.IndexByte(rest[at+1:], '/'); slash >= 0 && len(rest[at+1:]) > slash+1 {
		if has["database"] != nil {
			write += ", and database = …"
		} else {
			write += ", and no path: ops have them"
		}
	}
	return write + "."
}

// checkEndpoint checks an endpoint's form: host:port with a decimal port or a socket's path if the driver connects to it, else any printable word.
func checkEndpoint(e string, connected bool) error {
	if e == "" || len(e) > 300 || strings.ContainsFunc(e, func(r rune) bool { return r <= ' ' || r >= 0x7f }) {
		return errors.New("not 1 to 300 printable characters without spaces")
	}
	if !connected {
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
		return fmt.Errorf("port %s is not a number from 1 to 65535", dialect.Quote(port))
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

// SocketPath returns the path of the Unix socket that an endpoint names, or "" and false if it names a host and port.
func SocketPath(endpoint string) (name string, ok bool) {
	if name, ok = strings.CutPrefix(endpoint, "unix://"); !ok {
		name = ""
	}
	return name, ok
}
