package main

import (
	"fmt"
	"path"
	"strings"
)

const (
	sessions = 50
	keys     = 100_000
)

// cell is the work of one comparison.
type cell struct {
	server   string // "redis", "memcached", "postgres", "web", or an adapter: "node" or "java"
	op       string // "get" or "put"
	size     int    // bytes of a value
	pipeline int
}

func (c cell) String() string { return fmt.Sprintf("%s/%s/%d/%d", c.server, c.op, c.size, c.pipeline) }

// keys returns how many keys the cell's clients use.
func (c *cell) keys() int {
	if c.server == "web" {
		return files
	}
	return keys
}

// driver returns the name of loadgen's driver. It is another than the server's for an adapter: one of examples/adapters, over a map.
func (c *cell) driver() string {
	if c.server == "node" || c.server == "java" {
		return "redis"
	}
	return c.server
}

// program returns the server's program.
func (c *cell) program() string {
	switch c.server {
	case "redis":
		return "redis-server"
	case "postgres":
		return postgresProgram()
	case "web":
		return nginxProgram()
	}
	return c.server
}

// allCells returns every cell. Cells with the same server and size are adjacent: they share a server.
func allCells() []cell {
	var all []cell
	for _, size := range []int{32, 1 << 10, 16 << 10} {
		for _, op := range []string{"get", "put"} {
			for _, pipeline := range []int{1, 16, 64} {
				all = append(all, cell{"redis", op, size, pipeline})
			}
		}
	}
	for _, pipeline := range []int{1, 16, 64} {
		all = append(all, cell{"memcached", "get", 32, pipeline})
	}
	for _, pipeline := range []int{1, 16} {
		all = append(all, cell{"postgres", "get", 32, pipeline})
	}
	for _, size := range []int{32, 1 << 10, 16 << 10} {
		all = append(all, cell{"web", "get", size, 1})
	}
	for _, adapter := range []string{"node", "java"} {
		all = append(all, cell{adapter, "get", 32, 1})
	}
	return all
}

// choose returns the cells that match one of the comma-separated patterns; without patterns, all. A pattern may omit trailing parts, which then match
// anything. form describes a cell's name, for errors.
func choose[C fmt.Stringer](all []C, patterns, form string) ([]C, error) {
	if patterns == "" {
		return all, nil
	}
	var chosen []C
	for _, c := range all {
		for _, pattern := range strings.Split(patterns, ",") {
			name := c.String()
			rest := max(0, strings.Count(name, "/")-strings.Count(pattern, "/"))
			ok, err := path.Match(pattern+strings.Repeat("/*", rest), name)
			if err != nil {
				return nil, fmt.Errorf("-cells %q: %w", pattern, err)
			}
			if ok {
				chosen = append(chosen, c)
				break
			}
		}
	}
	if len(chosen) == 0 {
		return nil, fmt.Errorf("-cells %q matches none: write %s", patterns, form)
	}
	return chosen, nil
}
