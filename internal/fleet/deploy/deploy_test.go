package deploy_test

import (
	"bytes"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/loadgen/loadgen/internal/fleet/deploy"
	"github.com/loadgen/loadgen/internal/servertest"
	"github.com/loadgen/loadgen/internal/target/drivers"
	"github.com/loadgen/loadgen/pkg/plan"
)

var update = flag.Bool("update", false, "rewrite golden files")

const text = `plan "nightly" { on_worker_loss = "replace" }
target "cache" {
	driver    = "redis"
	endpoints = ["cache-0.cache:6379", "cache-1.cache:6380", "cache-2.cache:6379"]
}
dataset "d" {
	keys { count = 100 }
	values { size = 100 }
}

phase "gets" {
	target  = target.cache
	dataset = dataset.d
	ops     = { get = 1 }
	closed {
		sessions = 64
		duration = "10m"
	}
}
`

func parse(t *testing.T, text string) *plan.Plan {
	t.Helper()
	file, diags := plan.Parse([]byte(text), "test.hcl", drivers.All())
	require.Empty(t, diags)
	p, diags := file.Resolve(plan.Vars{})
	require.Empty(t, diags)
	return p
}

func cluster(t *testing.T) deploy.Kubernetes {
	return deploy.Kubernetes{
		Name: "nightly", Namespace: "load", Image: "registry.example/loadgen:1.0", Workers: 20, CPU: "2", Memory: "2Gi", Deadline: 4 * time.Hour,
		Storage: "1Gi", StorageClass: "shared", Vars: []string{"rate=10k/s", "name=$(HOME)"}, Text: []byte(text), Plan: parse(t, text),
		Credentials: deploy.Credentials{Key: "-----BEGIN PRIVATE KEY-----\nMIG…\n-----END PRIVATE KEY-----\n", Token: "lg1.key.secret", Root: "-----BEGIN CERTIFICATE-----\nMIH…\n-----END CERTIFICATE-----\n", Scrape: "SCRAPE"},
	}
}

// golden compares a text with a file of testdata. The files are decoded by the API's own types in deploy/manifests.
func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		require.NoError(t, os.WriteFile(path, got, 0o600))
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, string(want), string(got))
}

func TestManifests(t *testing.T) {
	k := cluster(t)
	require.NoError(t, k.Check())
	var all, secret bytes.Buffer
	require.NoError(t, k.Manifests(&all))
	require.NoError(t, k.Secret(&secret))
	golden(t, "kubernetes.yaml", all.Bytes())
	golden(t, "secret.yaml", secret.Bytes())
	require.NotContains(t, all.String(), "BEGIN PRIVATE KEY", "the credentials are in a file of their own")
	require.NotContains(t, all.String(), k.Credentials.Token)
	require.Equal(t, []int{6379, 6380}, k.TargetPorts())
}

// TestManifestsForPrometheus differ only in what it needs.
func TestManifestsForPrometheus(t *testing.T) {
	k := cluster(t)
	k.PodMonitor = true
	var all, secret bytes.Buffer
	require.NoError(t, k.Manifests(&all))
	require.NoError(t, k.Secret(&secret))
	golden(t, "kubernetes-pod-monitor.yaml", all.Bytes())
	golden(t, "secret-pod-monitor.yaml", secret.Bytes())
	require.NotContains(t, all.String(), k.Credentials.Scrape)
}

// TestManifestsForCertManager have certificates of an issuer in place of the Secret.
func TestManifestsForCertManager(t *testing.T) {
	k := cluster(t)
	var err error
	k.Issuer, err = deploy.ParseIssuer("ClusterIssuer/corp")
	k.Vars = nil
	k.Storage = ""
	require.ErrorContains(t, k.Check(), "--storage-class shared: add --storage SIZE")
	k.StorageClass = "" // runs end with their pods
	require.NoError(t, err)
	require.NoError(t, k.Check())
	var all bytes.Buffer
	require.NoError(t, k.Manifests(&all))
	golden(t, "kubernetes-cert-manager.yaml", all.Bytes())
	near, err := deploy.ParseIssuer("ours")
	require.NoError(t, err)
	require.Equal(t, deploy.Issuer{Kind: "Issuer", Name: "ours"}, near)
	for _, text := range []string{"", "/", "Issuer/", "Secret/a", "a/b/c", "a\nkind: Pod"} {
		_, err := deploy.ParseIssuer(text)
		require.ErrorContains(t, err, "--cert-manager", text)
	}
}

// TestStrangePlans are carried over byte for byte. Where YAML would read a text differently, it becomes a quoted string.
func TestStrangePlans(t *testing.T) {
	for _, text := range []string{"", "a", "a\n\n", "a\r\nb\n", "  leading\nb\n", "\t\x00\n", "# {{.Image}}\n---\nkind: Pod\n", "\u2028\n"} {
		k := cluster(t)
		k.Text = []byte(text)
		var all bytes.Buffer
		require.NoError(t, k.Manifests(&all))
		require.Equal(t, 4, strings.Count(all.String(), "\n---\n"), "%q makes no document of its own", text)
		_, rest, _ := strings.Cut(all.String(), "plan.hcl: ")
		if strings.HasPrefix(rest, `"`) {
			line, _, _ := strings.Cut(rest, "\n")
			var is string
			is, err := strconv.Unquote(strings.ReplaceAll(line, `\u0000`, `\x00`))
			require.NoError(t, err)
			require.Equal(t, text, is)
		}
	}
}

func TestClustersThatCannotBe(t *testing.T) {
	for want, change := range map[string]func(k *deploy.Kubernetes){
		"--name":            func(k *deploy.Kubernetes) { k.Name = "Nightly\nkind: Pod" },
		"--namespace":       func(k *deploy.Kubernetes) { k.Namespace = "a b" },
		"--workers 0":       func(k *deploy.Kubernetes) { k.Workers = 0 },
		"--cpu":             func(k *deploy.Kubernetes) { k.CPU = "2\n" },
		"--memory":          func(k *deploy.Kubernetes) { k.Memory = "much" },
		"--storage":         func(k *deploy.Kubernetes) { k.Storage = "" },
		"--deadline":        func(k *deploy.Kubernetes) { k.Deadline = time.Second },
		"a ConfigMap holds": func(k *deploy.Kubernetes) { k.Text = make([]byte, 1<<20) },
		"name its endpoints": func(k *deploy.Kubernetes) {
			k.Plan = parse(t, strings.Replace(text, `endpoints = ["cache-0.cache:6379", "cache-1.cache:6380", "cache-2.cache:6379"]`, "builtin { nodes = 2 }", 1))
		},
		"--pod-monitor":         func(k *deploy.Kubernetes) { k.PodMonitor, k.Issuer = true, deploy.Issuer{Kind: "Issuer", Name: "a"} },
		"on the workers' own d": func(k *deploy.Kubernetes) { k.Plan.Targets[0].Executor = plan.Thread },
	} {
		k := cluster(t)
		change(&k)
		require.ErrorContains(t, k.Check(), want)
	}
}

// A plan that was tried at home names the loopback, where each pod would find only itself.
func TestEndpointsOfThePodItself(t *testing.T) {
	k := cluster(t)
	require.Empty(t, k.Loopback())
	k.Plan.Targets[0].Endpoints = []string{"127.0.0.1:6379", "localhost:6379", "[::1]:6379", "10.0.0.7:6379", "localhost.example.org:6379", "/run/redis.sock"}
	name := k.Plan.Targets[0].Name
	require.Equal(t, []string{name + ": 127.0.0.1:6379", name + ": localhost:6379", name + ": [::1]:6379"}, k.Loopback())
}

// TestUnits has systemd read the units, and say how exposed the services are.
func TestUnits(t *testing.T) {
	u := deploy.Unit{Program: "/bin/true", Join: "10.0.0.7:7464", Plan: "/etc/loadgen/plan.hcl", Workers: 3}
	require.NoError(t, u.Check())
	var worker, coordinator bytes.Buffer
	require.NoError(t, u.Worker(&worker))
	require.NoError(t, u.Coordinator(&coordinator))
	golden(t, "loadgen-worker.service", worker.Bytes())
	golden(t, "loadgen-coordinator.service", coordinator.Bytes())
	analyze, err := exec.LookPath("systemd-analyze")
	servertest.Require(t, "systemd-analyze", err)
	for _, name := range []string{"loadgen-worker.service", "loadgen-coordinator.service"} {
		path, err := filepath.Abs(filepath.Join("testdata", name))
		require.NoError(t, err)
		out, err := exec.Command(analyze, "verify", "--man=no", path).CombinedOutput()
		require.NoError(t, err, "%s", out)
		require.NotContains(t, string(out), name, "it finds nothing to say")
		out, err = exec.Command(analyze, "security", "--offline=true", "--threshold=20", path).CombinedOutput()
		require.NoError(t, err, "%s", out)
		level := regexp.MustCompile(`exposure level for \S+: ([0-9.]+)`).FindStringSubmatch(string(out))
		require.NotNil(t, level, "%s", out)
		t.Logf("%s: exposure %s of 10", name, level[1])
	}
}

func TestUnitsThatCannotBe(t *testing.T) {
	for want, u := range map[string]deploy.Unit{
		"--program \"loadgen\"":     {Program: "loadgen"},
		"--program \"/a b\"":        {Program: "/a b"},
		"--join \"x:1\\nExecStart":  {Program: "/x", Join: "x:1\nExecStart=/bin/sh"},
		"--join \"$HOME:1\"":        {Program: "/x", Join: "$HOME:1"},
		"PLAN \"plan.hcl\": write":  {Program: "/x", Plan: "plan.hcl"},
		"PLAN \"/%h/plan.hcl\": a ": {Program: "/x", Plan: "/%h/plan.hcl"},
	} {
		require.ErrorContains(t, u.Check(), want)
	}
}
