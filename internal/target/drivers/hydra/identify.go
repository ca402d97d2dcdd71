package hydra

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/loadgen/loadgen/pkg/driver"
)

const (
	// maxAnswer bounds what a server may answer to a question about itself.
	maxAnswer = 1 << 20
	// askPause is the wait before a server is asked again whom it lists.
	askPause = 100 * time.Millisecond
)

// Identify asks /registry until the server lists all endpoints of the target, and /storage. The result holds "server", "version", "state" (2009 or 2011),
// "max_memory" and, unless the server is of 2009 and says nothing of them, "n", "w" and "r".
func (Driver) Identify(ctx context.Context, conn net.Conn, link driver.Link) (map[string]string, error) {
	cfg, err := check(link.Config)
	if err != nil {
		return nil, err
	}
	var id map[string]string
	err = driver.Interruptible(ctx, conn, func() (err error) {
		_, strays, err := meet(ctx, conn, link, cfg)
		if err != nil {
			return err
		}
		if id, err = describe(conn, link.Endpoint); err == nil && len(strays) > 0 {
			id[driver.Note] = strings.TrimPrefix(id[driver.Note]+"; its space has servers that are no endpoints, and copy values: "+strings.Join(strays, ", "), "; ")
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("ask Hydra Cache what it is: %w", err)
	}
	return id, nil
}

// Clustered implements driver.Cluster.
func (Driver) Clustered(config any) bool {
	cfg, ok := config.(*Config)
	return ok && cfg.Cluster
}

// Nodes asks /registry until the server lists all endpoints of the target, and returns all that it lists then.
func (d Driver) Nodes(ctx context.Context, conn net.Conn, link driver.Link) (nodes []driver.Node, err error) {
	cfg, err := check(link.Config)
	if err != nil {
		return nil, err
	}
	link.Ring = false
	err = driver.Interruptible(ctx, conn, func() error {
		listed, _, err := meet(ctx, conn, link, cfg)
		for _, at := range listed {
			if bad := d.CheckAddress(at); err == nil && bad != nil {
				err = fmt.Errorf("/registry lists %s: %w", at, bad)
			}
			nodes = append(nodes, driver.Node{Addr: at})
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("ask Hydra Cache for its servers: %w", err)
	}
	return nodes, nil
}

// meet waits until the server lists all endpoints of the target and, if the ring places keys, no other server. It returns all that it lists, and of
// these the ones that are no endpoints.
func meet(ctx context.Context, conn net.Conn, link driver.Link, cfg *Config) (listed, strays []string, err error) {
	waiting, cancel := context.WithTimeout(ctx, cfg.Ready)
	defer cancel()
	for {
		_, listed, err = registry(conn, link.Endpoint)
		if err != nil {
			return nil, nil, err
		}
		missing, strays := without(link.Others, listed), without(listed, link.Others)
		if len(link.Others) == 0 {
			strays = nil // the caller does not say which are endpoints
		}
		if len(missing) == 0 && (len(strays) == 0 || !link.Ring) {
			return listed, strays, nil
		}
		select {
		case <-time.After(askPause):
		case <-waiting.Done():
			switch {
			case ctx.Err() != nil:
				return nil, nil, ctx.Err()
			case len(missing) == 0 && cfg.Cluster:
				return nil, nil, fmt.Errorf("/registry also lists %s, which the server that was asked first does not: run again when all servers list each other",
					strings.Join(strays, ", "))
			case len(missing) == 0:
				return nil, nil, fmt.Errorf("/registry also lists %s: keys on its part of the ring would go elsewhere than the servers' own clients send them: write cluster = true, add it to endpoints, or write placement = \"ketama\"",
					strings.Join(strays, ", "))
			}
			return nil, nil, fmt.Errorf("/registry lists %s, and not %s, for %v: start all servers of the space before the run, and write endpoints as it lists them",
				strings.Join(listed, ", "), strings.Join(missing, ", "), cfg.Ready)
		}
	}
}

// without returns the addresses of all that are not among some.
func without(all, some []string) []string {
	return slices.DeleteFunc(slices.Clone(all), func(at string) bool { return slices.Contains(some, at) })
}

// registry asks which nodes a server lists.
func registry(conn net.Conn, host string) (server string, listed []string, err error) {
	r, err := ask(conn, host, "/registry")
	if err != nil {
		return "", nil, err
	}
	var nodes []struct {
		IP   string `json:"ip"`
		Port int    `json:"port"`
	}
	if err := json.Unmarshal(r.body, &nodes); err != nil {
		return "", nil, fmt.Errorf("/registry: no list of nodes, but %.80q: is it Hydra Cache?", r.body)
	}
	for _, n := range nodes {
		listed = append(listed, net.JoinHostPort(n.IP, strconv.Itoa(n.Port)))
	}
	slices.Sort(listed)
	return string(r.server), listed, nil
}

// describe asks the server for its own description.
func describe(conn net.Conn, host string) (map[string]string, error) {
	r, err := ask(conn, host, "/storage")
	if err != nil {
		return nil, err
	}
	var storage struct {
		N, W, R   *int
		MaxMemory any `json:"maxMemory"`
	}
	if err := json.Unmarshal(r.body, &storage); err != nil {
		return nil, fmt.Errorf("/storage: no figures, but %.80q: is it Hydra Cache?", r.body)
	}
	_, version, _ := strings.Cut(string(r.server), "/")
	id := map[string]string{"server": "hydra", "version": version, "state": "2011"}
	switch most := storage.MaxMemory.(type) {
	case string:
		id["max_memory"] = most
	case float64:
		id["max_memory"] = strconv.FormatFloat(most, 'f', -1, 64)
	}
	if storage.N == nil || storage.W == nil || storage.R == nil {
		id["state"] = "2009"
		id[driver.Note] = "the server does not say which N, W and R it has"
		return id, nil
	}
	id["n"], id["w"], id["r"] = strconv.Itoa(*storage.N), strconv.Itoa(*storage.W), strconv.Itoa(*storage.R)
	return id, nil
}

// ask sends a GET for a path and returns the response.
func ask(conn net.Conn, host, path string) (r response, err error) {
	a := driver.Asker{Conn: conn, Most: maxAnswer}
	a.Say([]byte("GET " + path + " HTTP/1.1\r\nHost: " + host + "\r\n\r\n"))
	err = a.Next(func(b []byte) (n int, err error) {
		r, err = parseResponse(b)
		return r.size, err
	})
	switch {
	case errors.Is(err, driver.ErrHungUp):
		return r, fmt.Errorf("%s: %w: is it Hydra Cache?", path, err)
	case err != nil:
		return r, fmt.Errorf("%s: %w", path, err)
	case r.status != 200:
		return r, fmt.Errorf("%s: the server answers %s: is it Hydra Cache?", path, r.reason)
	}
	return r, nil
}
