package command

import (
	"cmp"
	"encoding/base64"
	"errors"
	"fmt"
	"net"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/loadgen/loadgen/internal/plan/dialect"
	"github.com/loadgen/loadgen/internal/target/servers"
)

// address is a server to load, as people write it.
type address struct {
	driver   string
	endpoint string // HOST:PORT, or unix:///PATH
	tls      bool
	user     string
	password string // in the URL, which other users of this machine can read; "" for none
	database string // ignite: the data region
	path     string // of an HTTP request, with its query
	sslmode  string // of postgres
}

// schemeOf returns a URL's scheme, and the driver that it stands for; "" if there is none.
func schemeOf(name string) (driver string, s servers.Scheme) {
	for _, server := range servers.All() {
		for _, s := range server.Schemes {
			if s.Name == name {
				return server.Driver, s
			}
		}
	}
	return "", s
}

// choice are the servers that a command knows.
type choice struct {
	drivers []string
	write   string // what an address is, in words
	others  string // what to do about other servers
}

// driversThat lists the drivers of the servers for which a condition holds.
func driversThat(holds func(servers.Server) bool) (list []string) {
	for _, s := range servers.All() {
		if holds(s) {
			list = append(list, s.Driver)
		}
	}
	return list
}

// loadable are the servers of capacity and bench.
func loadable() choice {
	return choice{
		drivers: driversThat(func(s servers.Server) bool { return s.Objective != "" }),
		write:   "write HOST:PORT, or a URL: redis://, rediss://, memcached://, postgres://, http:// or https://",
		others:  "for the others, loadgen plan init --driver NAME writes a plan",
	}
}

// sizable are the servers of size.
func sizable() choice {
	return choice{
		drivers: driversThat(func(s servers.Server) bool { return s.Memory != "" }),
		write:   "write HOST:PORT, or a URL: redis://, rediss://, memcached://, postgres:// or ignite://",
		others:  "of the others, a plan that fills them and observes their processes says what their items take (docs/size.md#other-servers)",
	}
}

// parse reads a URL, or HOST:PORT or unix:///PATH of a driver. Its errors do not repeat text that may hold a password.
func (c choice) parse(text, driver string) (*address, error) {
	name, _, isURL := strings.Cut(text, "://")
	if !isURL || name == "unix" {
		return c.bare(text, driver)
	}
	named, s := schemeOf(strings.ToLower(name))
	if named == "" {
		return nil, fmt.Errorf("%.40q is not the scheme of a server that loadgen knows: %s", name+"://", c.write)
	}
	if driver != "" && driver != named {
		return nil, fmt.Errorf("--driver %s: %s:// already says that it is %s: leave --driver out", driver, name, named)
	}
	if !slices.Contains(c.drivers, named) {
		return nil, fmt.Errorf("%s://: %s: %s", name, c.write, c.others)
	}
	_, rest, _ := strings.Cut(text, "://")
	_, beyond, _ := strings.Cut(rest, "/")
	u, err := url.Parse(text)
	if strings.Contains(beyond, "@") && named != "web" { // a password may contain it, too, and no message may show one
		err = errors.New("the host ends before an @")
	}
	if err != nil || u.Hostname() == "" || u.Opaque != "" {
		return nil, fmt.Errorf("the address is no URL of a host: %s; in a password, write %%XX for characters such as @, / and %%", c.write)
	}
	a := &address{driver: named, tls: s.TLS, user: u.User.Username()}
	a.password, _ = u.User.Password()
	if a.endpoint, err = endpointOf(u.Hostname(), cmp.Or(u.Port(), s.Port)); err != nil {
		return nil, err
	}
	return a, a.rest(u)
}

// rest reads what follows the host.
func (a *address) rest(u *url.URL) error {
	within := strings.Trim(u.Path, "/")
	switch a.driver {
	case "web":
		a.path = u.RequestURI()
		if a.password != "" || a.user != "" {
			a.password = "Basic " + base64.StdEncoding.EncodeToString([]byte(a.user+":"+a.password))
			a.user = ""
		}
		return nil
	case "redis":
		if n, err := strconv.Atoi(within); within != "" && (err != nil || n < 0) {
			return fmt.Errorf("/%.40s: after the host of a redis:// URL comes the number of a database, such as /0", within)
		}
		a.database = within
	case "ignite":
		a.database = within
	case "postgres":
		a.database, a.sslmode = within, u.Query().Get("sslmode")
		if q := u.Query(); len(q) > 1 || len(q) == 1 && a.sslmode == "" {
			return errors.New("of the parameters of a postgres:// URL, only sslmode is understood here: write a plan for the others (docs/databases.md)")
		}
		return nil
	default:
		if within != "" {
			return fmt.Errorf("/%.40s: nothing follows the host of a memcached:// URL", within)
		}
	}
	if u.RawQuery != "" {
		return fmt.Errorf("?%.40s: a %s:// URL has no parameters here", u.RawQuery, u.Scheme)
	}
	return nil
}

// bare reads HOST:PORT or unix:///PATH.
func (c choice) bare(text, driver string) (*address, error) {
	a := &address{driver: cmp.Or(driver, "redis")}
	if !slices.Contains(c.drivers, a.driver) {
		remedy := "write one of " + strings.Join(c.drivers, ", ") + "; " + c.others
		if near := dialect.DidYouMean(a.driver, c.drivers); near != "" {
			remedy = "did you mean " + near + "?"
		}
		return nil, fmt.Errorf("--driver %s: %s", a.driver, remedy)
	}
	if a.driver == "web" {
		a.path = "/"
	}
	if strings.HasPrefix(text, "unix://") {
		a.endpoint = text
		return a, nil
	}
	if strings.Contains(text, "@") {
		return nil, errors.New("a user or a password needs a URL, such as redis://USER@HOST:PORT; the password goes into LOADGEN_SECRET_TARGET or --password-file")
	}
	host, port, err := net.SplitHostPort(text)
	if err != nil || host == "" {
		return nil, fmt.Errorf("%.80q is not an address: %s", text, c.write)
	}
	a.endpoint, err = endpointOf(host, port)
	return a, err
}

func endpointOf(host, port string) (string, error) {
	if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 {
		return "", fmt.Errorf("port %.20q: write a number from 1 to 65535", port)
	}
	return net.JoinHostPort(host, port), nil
}
