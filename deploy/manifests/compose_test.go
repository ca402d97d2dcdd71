package manifests

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// TestComposeNamesWhatIsThere: the files that deploy/compose.yml mounts exist and come to where they are looked for, and loadgen knows the flags and
// the plan of its commands.
func TestComposeNamesWhatIsThere(t *testing.T) {
	var stack struct {
		Services map[string]struct {
			Image   string   `json:"image"`
			Command []string `json:"command"`
			Volumes []string `json:"volumes"`
		} `json:"services"`
	}
	text, err := os.ReadFile(filepath.Join("..", "compose.yml"))
	if err == nil {
		err = yaml.Unmarshal(text, &stack)
	}
	if err != nil {
		t.Fatal(err)
	}
	inside := map[string]string{} // paths here, by paths in the containers
	for name, s := range stack.Services {
		for _, v := range s.Volumes {
			from, to, _ := strings.Cut(v, ":")
			to = strings.TrimSuffix(to, ":ro")
			if !strings.HasPrefix(from, ".") {
				continue
			}
			inside[to] = filepath.Join("..", from)
			if _, err := os.Stat(inside[to]); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
		if s.Image != "loadgen" {
			continue
		}
		args := []string{"run", "./cmd/loadgen"}
		for _, arg := range append(s.Command, "--help") { // reads all flags, and does nothing
			if strings.HasPrefix(arg, "/plans/") {
				arg = strings.TrimPrefix(arg, "/")
				if _, err := os.Stat(filepath.Join("..", "..", arg)); err != nil {
					t.Errorf("%s: %v", name, err)
				}
			}
			args = append(args, arg)
		}
		cmd := exec.Command("go", args...)
		cmd.Dir = filepath.Join("..", "..")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("%s: %v: %s", name, err, out)
		}
	}
	for path, want := range map[string]string{ // a path in a container that a mounted file names
		"/etc/loadgen/rules.yml":      "../prometheus.yml: rule_files: [rules.yml]",
		"/var/lib/grafana/dashboards": "../../grafana/provisioning/dashboards/loadgen.yml: path: /var/lib/grafana/dashboards",
		"/etc/grafana/provisioning":   "../../grafana/provisioning/datasources/prometheus.yml: url: http://127.0.0.1:9090",
		"/etc/loadgen/prometheus.yml": "../compose.yml: --config.file=/etc/loadgen/prometheus.yml",
	} {
		file, says, _ := strings.Cut(want, ": ")
		if b, err := os.ReadFile(file); inside[path] == "" || err != nil || !bytes.Contains(b, []byte(says)) {
			t.Errorf("%s: mounted: %v; %s says no %q: %v", path, inside[path] != "", file, says, err)
		}
	}
}
