package main

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/loadgen/loadgen/internal/result/run"
)

// client is a program that can do the work of some cells.
type client struct {
	name string
	exe  string
	// args returns the arguments for a number of ops on a server; nil if the client cannot do a cell's work.
	args func(c *cell, port string, ops int64) []string
	// fill returns the arguments that put the client's keys, if they are not those that loadgen has put.
	fill func(c *cell, port string) []string
	// rate reads the ops per second from the client's output.
	rate func(output string) (float64, error)
	// done reads the number of ops from the output, if the client runs for a time instead of a number of ops.
	done func(output string) (float64, error)
	// cpu reads the processor time per op in ns from the output, for clients whose whole process must not be counted.
	cpu func(output string) (float64, error)
}

// peer is a client that people could use instead of loadgen.
type peer struct {
	client
	version []string // arguments that make it print its version; nil if its build information has it
}

func loadgen(name, exe, dir string) client {
	plan := func(name string, c *cell, port string) []string {
		return []string{
			"coordinator", "run", name, "--runs", filepath.Join(dir, "runs"), "--out", resultIn(dir),
			"-var", `endpoints=["127.0.0.1:` + port + `"]`, "-var", "driver=" + c.driver(), "-var", "keys=" + strconv.Itoa(c.keys()), "-var", "size=" + strconv.Itoa(c.size),
		}
	}
	return client{
		name: name, exe: exe,
		args: func(c *cell, port string, ops int64) []string {
			return append(plan("plans/bench.hcl", c, port), "-var", "sessions="+strconv.Itoa(sessions),
				"-var", "pipeline="+strconv.Itoa(c.pipeline), "-var", "op="+c.op, "-var", "ops="+strconv.FormatInt(ops, 10))
		},
		fill: func(c *cell, port string) []string { return plan("bench/fill.hcl", c, port) },
		rate: rateIn(dir),
	}
}

// resultIn returns the path of the result of a run of loadgen.
func resultIn(dir string) string { return filepath.Join(dir, "run.json") }

// lastPhase reads the last phase of a run's result, and the figures of its only op.
func lastPhase(dir string) (*run.Phase, *run.Op, error) {
	b, err := os.ReadFile(resultIn(dir))
	if err != nil {
		return nil, nil, err
	}
	var r run.Run
	if err := json.Unmarshal(b, &r); err != nil {
		return nil, nil, fmt.Errorf("%s: %w", resultIn(dir), err)
	}
	for _, name := range slices.Backward(r.PhaseOrder) {
		for _, op := range r.Phase[name].Op {
			return r.Phase[name], op, nil
		}
	}
	return nil, nil, fmt.Errorf("%s has no figures", resultIn(dir))
}

// rateIn returns a function that reads the rate from a run's result: all ops, from the first start to the last end.
func rateIn(dir string) func(string) (float64, error) {
	return func(string) (float64, error) {
		_, op, err := lastPhase(dir)
		if err == nil && op.RateWall == nil {
			err = fmt.Errorf("%s has no rate", resultIn(dir))
		}
		if err != nil {
			return 0, err
		}
		return *op.RateWall, nil
	}
}

// floorOf returns loadgen's client that only moves bytes. The processor time that it reports is that of the exchange alone.
func floorOf(exe string) client {
	return client{
		name: "floor", exe: exe,
		args: func(c *cell, port string, ops int64) []string {
			if c.server != "redis" && c.server != "memcached" { // it cannot log in to PostgreSQL, nor write web requests
				return nil
			}
			return []string{
				"selfcheck", "floor", "127.0.0.1:" + port, "--driver", c.server, "--op", c.op, "--size", strconv.Itoa(c.size),
				"--sessions", strconv.Itoa(sessions), "--pipeline", strconv.Itoa(c.pipeline), "--ops", strconv.FormatInt(ops, 10),
			}
		},
		rate: number(regexp.MustCompile(`s, (\d+)/s\n`)),
		cpu:  number(regexp.MustCompile(`processor time of an op +(\d+) ns`)),
	}
}

// number returns a function that reads the last number that a pattern finds.
func number(pattern *regexp.Regexp) func(string) (float64, error) {
	return func(output string) (float64, error) {
		all := pattern.FindAllStringSubmatch(output, -1)
		if len(all) == 0 {
			return 0, fmt.Errorf("it printed no rate: %q", output)
		}
		return strconv.ParseFloat(all[len(all)-1][1], 64)
	}
}

// peers returns all clients that loadgen is compared with. They write to dir; those that run for a time run for about duration.
func peers(dir string, duration time.Duration) []peer {
	return []peer{redisBenchmark(), memtier(), goYCSB(), pgbench(), vegeta(dir, duration), wrk(duration)}
}

func redisBenchmark() peer {
	return peer{version: []string{"--version"}, client: client{
		name: "redis-benchmark",
		args: func(c *cell, port string, ops int64) []string {
			if c.server != "redis" {
				return nil
			}
			test := map[string]string{"get": "get", "put": "set"}[c.op]
			return []string{
				"-p", port, "-t", test, "-n", strconv.FormatInt(ops, 10), "-c", strconv.Itoa(sessions),
				"-P", strconv.Itoa(c.pipeline), "-r", strconv.Itoa(keys), "-d", strconv.Itoa(c.size), "-q",
			}
		},
		rate: number(regexp.MustCompile(`([\d.]+) requests per second`)),
	}}
}

// memtier uses keys of the same length as the others, by counting from a twelve-digit number.
func memtier() peer {
	common := func(c *cell, port string) []string {
		protocol := map[string]string{"redis": "redis", "memcached": "memcache_text"}[c.server]
		return []string{
			"-s", "127.0.0.1", "-p", port, "--protocol", protocol, "-t", "1", "-d", strconv.Itoa(c.size), "--hide-histogram",
			"--key-prefix", "key:", "--key-minimum", strconv.Itoa(1e11), "--key-maximum", strconv.Itoa(1e11 + keys - 1),
		}
	}
	return peer{version: []string{"--version"}, client: client{
		name: "memtier_benchmark",
		args: func(c *cell, port string, ops int64) []string {
			if c.server != "redis" && c.server != "memcached" {
				return nil
			}
			ratio := map[string]string{"get": "0:1", "put": "1:0"}[c.op]
			return append(common(c, port), "-c", strconv.Itoa(sessions), "--pipeline", strconv.Itoa(c.pipeline),
				"--ratio", ratio, "--key-pattern", "R:R", "-n", strconv.FormatInt(ops/sessions, 10))
		},
		fill: func(c *cell, port string) []string {
			return append(common(c, port), "-c", "1", "--pipeline", "64", "--ratio", "1:0", "--key-pattern", "P:P", "-n", "allkeys")
		},
		rate: number(regexp.MustCompile(`(?m)^Totals\s+([\d.]+)`)),
	}}
}

// goYCSB has no pipelining, and stores its values in records of one field.
func goYCSB() peer {
	common := func(command string, c *cell, port string) []string {
		return []string{
			command, "redis", "-p", "redis.addr=127.0.0.1:" + port, "-p", "redis.datatype=string", "-p", "workload=core",
			"-p", "recordcount=" + strconv.Itoa(keys), "-p", "fieldcount=1", "-p", "fieldlength=" + strconv.Itoa(c.size),
			"-p", "threadcount=" + strconv.Itoa(sessions),
		}
	}
	return peer{client: client{
		name: "go-ycsb",
		args: func(c *cell, port string, ops int64) []string {
			if c.server != "redis" || c.pipeline > 1 || c.op != "get" {
				return nil
			}
			return append(common("run", c, port), "-p", "operationcount="+strconv.FormatInt(ops, 10),
				"-p", "requestdistribution=uniform", "-p", "readproportion=1", "-p", "updateproportion=0")
		},
		fill: func(c *cell, port string) []string { return common("load", c, port) },
		rate: number(regexp.MustCompile(`READ\s.*OPS: ([\d.]+)`)),
	}}
}

// find returns the peers that this machine has, and says why the others are missing.
func find(all []peer) (found []peer, others []string) {
	var missing []string
	for _, p := range all {
		name := p.name
		if p.exe != "" {
			name = p.exe
		}
		exe, err := exec.LookPath(name)
		if err != nil {
			missing = append(missing, p.name)
			continue
		}
		p.exe = exe
		found = append(found, p)
	}
	if len(missing) > 0 {
		others = append(others, "not found: "+strings.Join(missing, ", "))
	}
	return found, others
}
