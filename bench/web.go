package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// files is how many keys the web cells have. Each is a file that nginx serves.
const files = 1000

// keyName returns a key as loadgen writes it.
func keyName(i int) string { return fmt.Sprintf("key:%012d", i) }

// nginxProgram returns nginx, which Debian keeps off most users' PATH.
func nginxProgram() string { return firstOf("nginx", "/usr/sbin/nginx") }

// webDir returns the directory of a server's files and settings, below the directory of a comparison.
func webDir(dir string) string { return filepath.Join(dir, "web") }

// targetsIn returns the file of vegeta's targets: a GET of each key.
func targetsIn(dir string) string { return filepath.Join(webDir(dir), "targets") }

func webArgs(dir string) []string {
	return []string{nginxProgram(), "-p", webDir(dir), "-c", filepath.Join(webDir(dir), "nginx.conf")}
}

// nginxConf makes one process serve static files, and log requests that are not hits. Its paths are relative to webDir.
const nginxConf = `daemon off;
master_process off;
pid nginx.pid;
error_log stderr crit;
events { worker_connections 1024; }
http {
	client_body_temp_path body;
	proxy_temp_path proxy;
	fastcgi_temp_path fastcgi;
	uwsgi_temp_path uwsgi;
	scgi_temp_path scgi;
	map "$request_method $status" $counted { "GET 200" 0; default 1; }
	log_format counted '$request_method $status';
	access_log access.log counted if=$counted;
	sendfile on;
	tcp_nopush on;
	open_file_cache max=2000;
	keepalive_requests 1000000000;
	server {
		listen 127.0.0.1:%s;
		root data;
		location / { dav_methods PUT; }
		location = /status { stub_status; access_log off; }
	}
}
`

// initWeb writes a server's settings, without any files to serve, replacing existing ones.
func initWeb(port, dir string) error {
	web := webDir(dir)
	if err := errors.Join(os.RemoveAll(web), os.MkdirAll(filepath.Join(web, "data"), 0o755)); err != nil {
		return err
	}
	var targets strings.Builder
	for i := range files {
		fmt.Fprintf(&targets, "GET http://127.0.0.1:%s/%s\n\n", port, keyName(i))
	}
	return errors.Join(
		os.WriteFile(filepath.Join(web, "nginx.conf"), fmt.Appendf(nil, nginxConf, port), 0o600),
		os.WriteFile(targetsIn(dir), []byte(targets.String()), 0o600),
	)
}

// webStats returns how many requests nginx has answered, including this one, how many of them were gets that found nothing, and how many were not
// gets.
func webStats(port, dir string) (map[string]float64, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://127.0.0.1:"+port+"/status", nil)
	if err != nil {
		return nil, err
	}
	req.Close = true
	response, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	page, err := io.ReadAll(io.LimitReader(response.Body, 4096))
	if err != nil {
		return nil, err
	}
	requests, err := number(regexp.MustCompile(`requests\s+\d+ \d+ (\d+)`))(string(page))
	if err != nil {
		return nil, err
	}
	log, err := os.ReadFile(filepath.Join(webDir(dir), "access.log"))
	if err != nil {
		return nil, err
	}
	lines, gets := strings.Count(string(log), "\n"), strings.Count(string(log), "GET ")
	return map[string]float64{"requests": requests, "get_misses": float64(gets), "others": float64(lines - gets)}, nil
}

// vegeta requests the keys in turn, with as many workers as the others have connections, for a time: it takes no number of requests.
func vegeta(dir string, duration time.Duration) peer {
	out := filepath.Join(dir, "vegeta.bin")
	exe := vegetaProgram()
	figure := func(read func(vegetaReport) float64) func(string) (float64, error) {
		return func(string) (float64, error) {
			r, err := reportOf(exe, out)
			return read(r), err
		}
	}
	return peer{client: client{
		name: "vegeta", exe: exe,
		args: func(c *cell, _ string, _ int64) []string {
			if c.server != "web" || c.op != "get" || c.pipeline > 1 {
				return nil
			}
			workers := strconv.Itoa(sessions)
			return []string{
				"attack", "-targets=" + targetsIn(dir), "-rate=0", "-max-workers=" + workers, "-workers=" + workers,
				"-duration=" + duration.String(), "-output=" + out,
			}
		},
		rate: figure(func(r vegetaReport) float64 { return r.Throughput }),
		done: figure(func(r vegetaReport) float64 { return r.Requests }),
	}}
}

// vegetaProgram returns vegeta, which make test-servers builds.
func vegetaProgram() string { return firstOf("vegeta", cached("vegeta")) }

// firstOf returns the first of several programs that is there; if none is, the first.
func firstOf(programs ...string) string {
	for _, name := range programs {
		if _, err := exec.LookPath(name); err == nil {
			return name
		}
	}
	return programs[0]
}

// cached returns the path of what make test-servers fetches or builds.
func cached(name string) string {
	cache, _ := os.UserCacheDir() // without one, it is not there
	return filepath.Join(cache, "loadgen", name)
}

// vegetaReport holds the fields that are read from vegeta's own report.
type vegetaReport struct {
	Requests   float64 `json:"requests"`
	Throughput float64 `json:"throughput"` // successes per second, to the last end
}

// reportOf makes vegeta read its results.
func reportOf(exe, results string) (r vegetaReport, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	text, err := exec.CommandContext(ctx, exe, "report", "-type=json", results).CombinedOutput()
	if err != nil {
		return r, fmt.Errorf("vegeta report %s: %w\n%s", results, err, text)
	}
	if err := json.Unmarshal(text, &r); err != nil {
		return r, fmt.Errorf("vegeta report %s: %w\n%s", results, err, text)
	}
	return r, nil
}

// wrk requests one key again and again, for at least one whole second: without a script it knows only one URL.
func wrk(duration time.Duration) peer {
	seconds := max(1, int(math.Round(duration.Seconds())))
	return peer{version: []string{"-v"}, client: client{
		name: "wrk",
		args: func(c *cell, port string, _ int64) []string {
			if c.server != "web" || c.op != "get" || c.pipeline > 1 {
				return nil
			}
			return []string{"-t1", "-c" + strconv.Itoa(sessions), fmt.Sprintf("-d%ds", seconds), "http://127.0.0.1:" + port + "/" + keyName(0)}
		},
		rate: number(regexp.MustCompile(`Requests/sec:\s+([\d.]+)`)),
		done: number(regexp.MustCompile(`(\d+) requests in `)),
	}}
}
