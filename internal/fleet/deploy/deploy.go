// Package deploy writes what other systems need to place and restart loadgen on many machines: manifests for Kubernetes, units for systemd. The start
// barrier, leases and exact merging stay in loadgen.
package deploy

import (
	"embed"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/netip"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"text/template"
	"time"

	"github.com/loadgen/loadgen/pkg/plan"
)

//go:embed kubernetes.yaml.tmpl worker.service.tmpl coordinator.service.tmpl
var templates embed.FS

// Ports of a deployed coordinator: for workers, and for its page.
const (
	Port     = 7464
	PagePort = 9464
)

// Kubernetes describes a deployment to a cluster.
type Kubernetes struct {
	Name         string // prefix of all objects' names
	Namespace    string // "" for the namespace of whoever applies the objects
	Image        string
	Workers      int           // besides the coordinator
	CPU          string        // request and limit of each pod, as Kubernetes writes it
	Memory       string        // request and limit of each pod, as Kubernetes writes it
	Deadline     time.Duration // after this long, everything is ended
	Storage      string        // size of a volume that keeps runs, and that every pod mounts; "" for none, so that runs are lost with their pods
	StorageClass string        // class of that volume; "" for the cluster's default
	Vars         []string      // variables of the plan, as NAME=VALUE
	PodMonitor   bool          // make objects with which Prometheus Operator scrapes the coordinator's page
	Text         []byte        // text of the plan
	Plan         *plan.Plan
	Credentials  Credentials
	Issuer       Issuer // issuer of the pods' certificates; if zero, the pods use Credentials instead
}

// Issuer names a cert-manager issuer.
type Issuer struct{ Kind, Name string }

// ParseIssuer parses NAME, which means an Issuer, or KIND/NAME.
func ParseIssuer(text string) (Issuer, error) {
	kind, name, found := strings.Cut(text, "/")
	if !found {
		kind, name = "Issuer", text
	}
	if kind != "Issuer" && kind != "ClusterIssuer" || !validName.MatchString(name) {
		return Issuer{}, fmt.Errorf("--cert-manager %q: write the NAME of an Issuer, or ClusterIssuer/NAME", text)
	}
	return Issuer{Kind: kind, Name: name}, nil
}

// Credentials holds the key of the coordinator's authority and a token for its workers. For its page, it holds the certificate of the page's issuer
// in PEM and the token for scrapers.
type Credentials struct{ Key, Token, Root, Scrape string }

// validName is the name of a Kubernetes object, short enough for the suffixes that Kubernetes adds.
var validName = regexp.MustCompile(`^[a-z]([-a-z0-9]{0,38}[a-z0-9])?$`)

// maxPlan is the most bytes of plan that a ConfigMap holds beside its other content.
const maxPlan = 1000 << 10

// Check returns an error for anything that a cluster could not run or would misread.
func (k *Kubernetes) Check() error {
	switch {
	case !validName.MatchString(k.Name):
		return fmt.Errorf("--name %q: write 1 to 40 lower-case letters, digits and hyphens, a letter first", k.Name)
	case k.Namespace != "" && !validName.MatchString(k.Namespace):
		return fmt.Errorf("--namespace %q: write lower-case letters, digits and hyphens", k.Namespace)
	case k.Workers < 1 || k.Workers > 10_000:
		return fmt.Errorf("--workers %d: write a number from 1 to 10000", k.Workers)
	case k.Deadline < time.Minute:
		return fmt.Errorf("--deadline %v: write a minute or more", k.Deadline)
	case k.PodMonitor && k.Issuer != Issuer{}:
		return fmt.Errorf("--cert-manager, --pod-monitor: Prometheus knows the page by the Secret that --cert-manager does without: leave one of them out")
	case k.StorageClass != "" && k.Storage == "":
		return fmt.Errorf("--storage-class %s: add --storage SIZE, which asks for the volume", k.StorageClass)
	case len(k.Text) > maxPlan:
		return fmt.Errorf("the plan has %d bytes, and a ConfigMap holds %d: put it into the image", len(k.Text), maxPlan)
	}
	for _, q := range []struct{ flag, text string }{{"--cpu", k.CPU}, {"--memory", k.Memory}, {"--storage", k.Storage}} {
		if q.text == "" && q.flag == "--storage" {
			continue
		}
		if !regexp.MustCompile(`^[0-9]+(\.[0-9]+)?(m|k|M|G|T|Ki|Mi|Gi|Ti)?$`).MatchString(q.text) {
			return fmt.Errorf("%s %q: write a quantity as Kubernetes has it, such as 2 or 4Gi", q.flag, q.text)
		}
	}
	for _, t := range k.Plan.Targets {
		if t.Builtin != nil && len(t.Endpoints) == 0 {
			return fmt.Errorf("target %q is built-in nodes, which other pods cannot reach: name its endpoints", t.Name)
		}
		if t.Executor == plan.Thread {
			return fmt.Errorf("target %q is log files on the workers' own disks, which these manifests do not mount: run it with deploy systemd", t.Name)
		}
	}
	return nil
}

// Loopback lists the endpoints of targets that every pod would look for in itself, as "TARGET: ENDPOINT": the loopback's.
func (k *Kubernetes) Loopback() (list []string) {
	for _, t := range k.Plan.Targets {
		for _, endpoint := range t.Endpoints {
			host, _, err := net.SplitHostPort(endpoint)
			if err != nil {
				continue // a Unix socket, which a pod may share
			}
			if ip, err := netip.ParseAddr(host); host == "localhost" || err == nil && ip.IsLoopback() {
				list = append(list, t.Name+": "+endpoint)
			}
		}
	}
	return list
}

// Manifests writes everything but the Secret.
func (k *Kubernetes) Manifests(w io.Writer) error { return k.write(w, "manifests") }

// Secret writes the Secret with the credentials.
func (k *Kubernetes) Secret(w io.Writer) error { return k.write(w, "secret") }

func (k *Kubernetes) write(w io.Writer, name string) error {
	t, err := template.New("").Funcs(template.FuncMap{"q": quote, "lines": lines, "argument": argument}).ParseFS(templates, "kubernetes.yaml.tmpl")
	if err != nil {
		return err
	}
	return t.ExecuteTemplate(w, name, k)
}

// Pods is the number of pods, including the coordinator.
func (k *Kubernetes) Pods() int { return k.Workers + 1 }

// Seconds is the deadline in seconds.
func (k *Kubernetes) Seconds() int64 { return int64(k.Deadline.Seconds()) }

// Host is where workers find the coordinator.
func (k *Kubernetes) Host() string { return k.Name + "-0." + k.Name }

// Port is where the coordinator listens.
func (k *Kubernetes) Port() int { return Port }

// PagePort is where the coordinator's page is.
func (k *Kubernetes) PagePort() int { return PagePort }

// TargetPorts lists the TCP ports of the plan's targets.
func (k *Kubernetes) TargetPorts() (ports []int) {
	for _, t := range k.Plan.Targets {
		for _, e := range t.Endpoints {
			_, text, err := net.SplitHostPort(e)
			if port, bad := strconv.Atoi(text); err == nil && bad == nil && !slices.Contains(ports, port) {
				ports = append(ports, port)
			}
		}
	}
	slices.Sort(ports)
	return ports
}

// quote returns a text as a YAML string, which JSON is.
func quote(text any) (string, error) {
	b, err := json.Marshal(fmt.Sprint(text))
	return string(b), err
}

// argument is quote for what Kubernetes would expand: $(NAME).
func argument(text string) (string, error) { return quote(strings.ReplaceAll(text, "$", "$$")) }

// lines returns a text as a YAML block scalar, in readable lines, or as a quoted string if a block scalar would change it.
func lines(indent int, text []byte) (string, error) {
	s := string(text)
	if strings.ContainsFunc(s, func(r rune) bool { return r != '\n' && r != '\t' && !strconv.IsPrint(r) }) || !strings.HasSuffix(s, "\n") || strings.HasSuffix(s, "\n\n") {
		return quote(s)
	}
	pad := strings.Repeat(" ", indent)
	all := strings.Split(strings.TrimSuffix(s, "\n"), "\n")
	for i, l := range all {
		if l != "" {
			all[i] = pad + l
		}
	}
	return "|2\n" + strings.Join(all, "\n"), nil
}

// Unit describes a systemd unit.
type Unit struct {
	Program string // path of loadgen
	Join    string // HOST:PORT of the coordinator; for a worker
	Plan    string // path of the plan; for a coordinator
	Workers int    // number of workers that a coordinator waits for
}

// Check returns an error for anything that a unit file would misread.
func (u *Unit) Check() error {
	for _, f := range []struct{ flag, text string }{{"--program", u.Program}, {"--join", u.Join}, {"PLAN", u.Plan}} {
		if strings.ContainsFunc(f.text, func(r rune) bool { return r <= ' ' || !strconv.IsPrint(r) || strings.ContainsRune(`"'\%$;#`, r) }) {
			return fmt.Errorf("%s %q: a unit takes no blanks, quotes, %%, $, ;, # or backslashes there", f.flag, f.text)
		}
	}
	if !strings.HasPrefix(u.Program, "/") {
		return fmt.Errorf("--program %q: write an absolute path", u.Program)
	}
	if u.Plan != "" && !strings.HasPrefix(u.Plan, "/") {
		return fmt.Errorf("PLAN %q: write the absolute path that the plan has on the coordinator's machine", u.Plan)
	}
	return nil
}

// Worker writes the unit of a worker.
func (u *Unit) Worker(w io.Writer) error { return u.write(w, "worker.service.tmpl") }

// Coordinator writes the unit of a coordinator.
func (u *Unit) Coordinator(w io.Writer) error { return u.write(w, "coordinator.service.tmpl") }

func (u *Unit) write(w io.Writer, name string) error {
	t, err := template.ParseFS(templates, name)
	if err != nil {
		return err
	}
	return t.Execute(w, struct {
		*Unit
		Port int
	}{u, Port})
}
