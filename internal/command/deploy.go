package command

import (
	"bytes"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/loadgen/loadgen/internal/base/safefile"
	"github.com/loadgen/loadgen/internal/fleet/deploy"
	"github.com/loadgen/loadgen/internal/fleet/identity"
	"github.com/loadgen/loadgen/internal/target/drivers"
)

func newKubernetes(known *drivers.Set) *cobra.Command {
	var k deploy.Kubernetes
	flags := planFlags{known: known}
	var credentials, issuer string
	c := &cobra.Command{
		Use:   "kubernetes PLAN.hcl",
		Short: "Print manifests that run a plan on Kubernetes",
		Long: `Print manifests that run a plan on Kubernetes 1.33 or later: a Job whose index 0 is the coordinator and whose other indexes are workers, and what
it needs. The key and the token that authenticate them go to a separate file, unless cert-manager issues their certificates.

Variables are set by -var, which the manifests carry; values from the environment are not used there. The report is in the coordinator's log. With --storage, the
run is also kept on a volume.`,
		Example: `  loadgen deploy kubernetes mine.hcl --workers 20 --image registry.example/loadgen:1.0 > loadgen.yaml
  loadgen deploy kubernetes plans/web.hcl -var endpoints=shop.default.svc:80 --workers 3 > loadgen.yaml
  kubectl apply -f loadgen-credentials.yaml -f loadgen.yaml`,
		Args: one("plan"),
		RunE: func(cmd *cobra.Command, args []string) error {
			text, err := flags.open(args[0])
			if err != nil {
				return err
			}
			k.Text, k.Vars = text.text, flags.vars
			if k.Plan, err = text.plan(cmd.ErrOrStderr()); err != nil {
				return err
			}
			if own := k.Loopback(); own != nil {
				fmt.Fprintf(cmd.ErrOrStderr(), "warning: %s: on the loopback each pod finds only itself; name the target's Service or address\n", strings.Join(own, ", "))
			}
			if issuer != "" {
				if k.Issuer, err = deploy.ParseIssuer(issuer); err != nil {
					return err
				}
				if cmd.Flags().Changed("credentials") {
					return errors.New("--cert-manager, --credentials: cert-manager issues the pods' credentials: leave one of them out")
				}
			}
			if err := k.Check(); err != nil {
				return err
			}
			if issuer == "" {
				if err := makeCredentials(cmd, &k, credentials); err != nil {
					return err
				}
			}
			return orFailed(k.Manifests(cmd.OutOrStdout()))
		},
	}
	f := c.Flags()
	f.IntVar(&k.Workers, "workers", 3, "run `N` workers beside the coordinator")
	f.StringVar(&k.Image, "image", "loadgen:"+version(), "run `IMAGE`, built by deploy/Containerfile")
	f.StringVar(&k.Name, "name", "loadgen", "name all objects `NAME`")
	f.StringVar(&k.Namespace, "namespace", "", "put them in `NAMESPACE` (default: the one they are applied in)")
	f.StringVar(&k.CPU, "cpu", "2", "give each pod exactly this many `PROCESSORS`")
	f.StringVar(&k.Memory, "memory", "2Gi", "give each pod exactly this much `MEMORY`")
	f.DurationVar(&k.Deadline, "deadline", 4*time.Hour, "end the Job after `DURATION`")
	f.StringArrayVar(&flags.vars, "var", nil, "set a variable of the plan: `NAME=VALUE`, as the pods will; repeatable")
	f.StringVar(&k.Storage, "storage", "", "keep runs on a volume of `SIZE`, such as 1Gi, that is ReadWriteMany (default: none; they end with their pods)")
	f.StringVar(&k.StorageClass, "storage-class", "", "use `CLASS` for it, which several nodes can write to (default: the cluster's own)")
	f.BoolVar(&k.PodMonitor, "pod-monitor", false, "add a PodMonitor to scrape the coordinator's page; needs the Prometheus operator")
	f.StringVar(&issuer, "cert-manager", "", "have cert-manager issue the pods' certificates from `ISSUER`: NAME or ClusterIssuer/NAME (default: the Secret of --credentials)")
	f.StringVar(&credentials, "credentials", "loadgen-credentials.yaml", "write the Secret with the key and the token to `FILE`, which must not exist yet")
	return c
}

// makeCredentials writes the credentials beside the manifests.
func makeCredentials(cmd *cobra.Command, k *deploy.Kubernetes, credentials string) error {
	key, token, root, err := identity.Make()
	if err != nil {
		return failed("%w", err)
	}
	k.Credentials = deploy.Credentials{Key: string(key), Token: token.Text(), Root: string(root), Scrape: rand.Text()}
	err = safefile.Create(credentials, 0o600, k.Secret)
	if errors.Is(err, os.ErrExist) {
		return fmt.Errorf("--credentials %s already exists: apply it again, or remove it to get new ones", credentials)
	}
	if err != nil {
		return failed("--credentials: %w", err)
	}
	fmt.Fprintf(cmd.ErrOrStderr(), "the key and the token are in %s: apply it first, and keep it secret\n", credentials)
	return nil
}

func newSystemd() *cobra.Command {
	u := deploy.Unit{Program: "/usr/local/bin/loadgen"}
	w := &cobra.Command{
		Use:     "worker",
		Short:   "Print the unit of a worker",
		Example: "  loadgen deploy systemd worker --join 10.0.0.7:7464 > /etc/systemd/system/loadgen-worker.service",
		Args:    atMost(0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if u.Join == "" {
				return errors.New("--join is missing: write HOST:PORT of the coordinator")
			}
			if err := u.Check(); err != nil {
				return err
			}
			return u.Worker(cmd.OutOrStdout())
		},
	}
	w.Flags().StringVar(&u.Join, "join", "", "`HOST:PORT` of the coordinator")
	c := &cobra.Command{
		Use:     "coordinator PLAN",
		Short:   "Print the unit of a coordinator",
		Example: "  loadgen deploy systemd coordinator /etc/loadgen/plan.hcl --workers 3 > /etc/systemd/system/loadgen-coordinator.service",
		Args:    one("plan"),
		RunE: func(cmd *cobra.Command, args []string) error {
			u.Plan = args[0]
			if u.Workers < 1 {
				return fmt.Errorf("--workers %d: write a number above 0", u.Workers)
			}
			if err := u.Check(); err != nil {
				return err
			}
			return u.Coordinator(cmd.OutOrStdout())
		},
	}
	c.Flags().IntVar(&u.Workers, "workers", 3, "wait for `N` workers")
	g := group("systemd", "Print systemd units", w, c)
	g.PersistentFlags().StringVar(&u.Program, "program", u.Program, "`PATH` of loadgen on that machine")
	return g
}

// pod holds the arguments that a manifest passes to a pod.
type pod struct {
	index, workers           int
	coordinator, credentials string
	certificates             string
	runs, page               string
	vars                     []string
	ttl                      time.Duration
}

// newPod makes the command that pods run. One template serves the coordinator and the workers.
func newPod() *cobra.Command {
	var p pod
	c := &cobra.Command{
		Use:    "pod PLAN",
		Short:  "Run the coordinator or a worker in a Job of loadgen deploy kubernetes",
		Hidden: true,
		Args:   one("plan"),
		RunE: func(_ *cobra.Command, args []string) error {
			return orFailed(p.become(args[0]))
		},
	}
	f := c.Flags()
	f.IntVar(&p.index, "index", 0, "pod index")
	f.IntVar(&p.workers, "workers", 1, "number of workers")
	f.StringVar(&p.coordinator, "coordinator", "", "where workers find it")
	f.StringVar(&p.credentials, "credentials", "", "directory of the mounted Secret")
	f.StringVar(&p.certificates, "certificates", "", "directory of cert-manager's certificates, instead of the Secret")
	f.StringVar(&p.runs, "runs", "", "directory for runs")
	f.StringArrayVar(&p.vars, "var", nil, "variable of the plan")
	f.StringVar(&p.page, "page", "", "address of the coordinator's page")
	f.DurationVar(&p.ttl, "ttl", time.Hour, "token lifetime from the coordinator's start")
	return c
}

// maxCredential is the largest file of the Secret that is read.
const maxCredential = 16 << 10

// become replaces this process with the coordinator or worker that the pod is for.
func (p *pod) become(path string) error {
	args, role := []string{"worker", "--join", p.coordinator, "--name", fmt.Sprintf("worker-%d", p.index), "--once"}, identity.Worker
	if p.index == 0 {
		role = identity.Coordinator
		args = []string{
			"coordinator", "run", path, "--listen", fmt.Sprintf("0.0.0.0:%d", deploy.Port), "--workers", strconv.Itoa(p.workers), "--wait", "10m",
			"--runs", p.runs, "--progress", "lines",
		}
		for _, v := range p.vars {
			args = append(args, "--var", v)
		}
		if p.page != "" {
			host, _, err := net.SplitHostPort(p.coordinator)
			if err != nil {
				return err
			}
			args = append(args, "--http", p.page, "--http-name", host)
		}
	}
	environment := os.Environ()
	if p.certificates != "" {
		dir := filepath.Join(p.certificates, string(role))
		args = append(args, "--tls-ca", filepath.Join(dir, "ca.crt"), "--tls-cert", filepath.Join(dir, "tls.crt"), "--tls-key", filepath.Join(dir, "tls.key"))
	} else {
		text, err := safefile.Read(filepath.Join(p.credentials, "token"), maxCredential)
		if err != nil {
			return err
		}
		if role == identity.Worker {
			environment = append(environment, tokenVariable+"="+string(bytes.TrimSpace(text)))
		} else if err := p.adopt(string(text)); err != nil {
			return err
		}
	}
	exe, err := os.Executable()
	if err != nil {
		return err
	}
	return syscall.Exec(exe, append([]string{"loadgen"}, args...), environment)
}

// adopt installs the authority's key and the page's token from the Secret, and accepts workers with the Secret's other token.
func (p *pod) adopt(text string) error {
	key, err := safefile.Read(filepath.Join(p.credentials, "authority.pem"), maxCredential)
	if err != nil {
		return err
	}
	var scrape []byte
	if p.page != "" {
		if scrape, err = safefile.Read(filepath.Join(p.credentials, "scrape"), maxCredential); err != nil {
			return err
		}
	}
	token, err := identity.ParseToken(text)
	if err != nil {
		return err
	}
	dir, err := fleetDir()
	if err != nil {
		return err
	}
	if err := identity.Install(dir, key, scrape); err != nil {
		return err
	}
	tokens, err := identity.OpenTokens(dir)
	if err != nil {
		return err
	}
	return tokens.Adopt(token, p.ttl, min(2*p.workers, identity.MaxTokenUses)) // a worker may restart on another node
}
