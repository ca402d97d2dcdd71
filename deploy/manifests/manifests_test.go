// Package manifests decodes what loadgen deploy kubernetes prints by the types of the Kubernetes API, as strictly as an API server does. It is a module
// of its own so that loadgen does not depend on them.
package manifests

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	certmanager "github.com/cert-manager/cert-manager/pkg/apis/certmanager/v1"
	monitoring "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	batch "k8s.io/api/batch/v1"
	core "k8s.io/api/core/v1"
	networking "k8s.io/api/networking/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"
)

// kinds are the API's types, by apiVersion and kind.
var kinds = map[string]func() any{
	"v1 ConfigMap":                        func() any { return new(core.ConfigMap) },
	"v1 Secret":                           func() any { return new(core.Secret) },
	"v1 Service":                          func() any { return new(core.Service) },
	"v1 PersistentVolumeClaim":            func() any { return new(core.PersistentVolumeClaim) },
	"networking.k8s.io/v1 NetworkPolicy":  func() any { return new(networking.NetworkPolicy) },
	"batch/v1 Job":                        func() any { return new(batch.Job) },
	"monitoring.coreos.com/v1 PodMonitor": func() any { return new(monitoring.PodMonitor) },
	"cert-manager.io/v1 Certificate":      func() any { return new(certmanager.Certificate) },
}

// decode returns the documents of a golden file, by their kind; certificates by their name, too.
func decode(t *testing.T, name string) map[string]any {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", "internal", "fleet", "deploy", "testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]any{}
	for _, document := range strings.Split(string(text), "\n---\n") {
		document += "\n" // which was the separator's
		var of meta.TypeMeta
		if err := yaml.Unmarshal([]byte(document), &of); err != nil {
			t.Fatal(err)
		}
		kind := kinds[of.APIVersion+" "+of.Kind]
		if kind == nil {
			t.Fatalf("nobody knows %s %s", of.APIVersion, of.Kind)
		}
		into := kind()
		if err := yaml.UnmarshalStrict([]byte(document), into); err != nil {
			t.Fatalf("%s: %v", of.Kind, err)
		}
		if c, is := into.(*certmanager.Certificate); is {
			of.Kind += " " + c.Name
		}
		all[of.Kind] = into
	}
	return all
}

// TestManifestsAreOfTheAPI also holds what the run relies on.
func TestManifestsAreOfTheAPI(t *testing.T) {
	all := decode(t, "kubernetes.yaml")
	if len(all) != 5 {
		t.Fatalf("%d kinds", len(all))
	}
	spec := all["Job"].(*batch.Job).Spec
	rules := spec.PodFailurePolicy.Rules
	switch {
	case *spec.CompletionMode != batch.IndexedCompletion, *spec.Completions != 21, *spec.Parallelism != 21:
		t.Error("all pods run at the same time, each with its index")
	case *spec.BackoffLimitPerIndex != 0, len(rules) != 1, rules[0].Action != batch.PodFailurePolicyActionFailIndex, len(rules[0].OnExitCodes.Values) != 7:
		t.Error("nothing is run again by itself")
	case *spec.SuccessPolicy.Rules[0].SucceededIndexes != "0":
		t.Error("the coordinator decides")
	case spec.Template.Spec.RestartPolicy != core.RestartPolicyNever, *spec.ActiveDeadlineSeconds != 4*3600:
		t.Error("it ends")
	}
	service := all["Service"].(*core.Service)
	if service.Spec.ClusterIP != core.ClusterIPNone || service.Name != spec.Template.Spec.Subdomain {
		t.Error("the coordinator has a name")
	}
	for key, value := range service.Spec.Selector {
		if spec.Template.Labels[key] != value {
			t.Error("the service finds the pods")
		}
	}
	container := spec.Template.Spec.Containers[0]
	if s := container.SecurityContext; *s.AllowPrivilegeEscalation || !*s.ReadOnlyRootFilesystem || s.Capabilities.Drop[0] != "ALL" || !*spec.Template.Spec.SecurityContext.RunAsNonRoot {
		t.Error("pods have more rights than they need")
	}
	if container.Resources.Requests.Cpu().Cmp(*container.Resources.Limits.Cpu()) != 0 {
		t.Error("requests are limits")
	}
	if plan := all["ConfigMap"].(*core.ConfigMap).Data["plan.hcl"]; !strings.HasPrefix(plan, "plan \"nightly\"") || !strings.HasSuffix(plan, "}\n") || !strings.Contains(plan, "\n\tendpoints = [") {
		t.Errorf("the plan is carried over as it is: %q", plan)
	}
	names := map[string]bool{}
	for _, v := range spec.Template.Spec.Volumes {
		names[v.Name] = true
	}
	for _, m := range container.VolumeMounts {
		if !names[m.Name] {
			t.Errorf("no volume %s", m.Name)
		}
	}
}

// TestPodMonitorFindsThePage holds that what it names is there: the port, the Secret's keys, and the way through the policy.
func TestPodMonitorFindsThePage(t *testing.T) {
	all := decode(t, "kubernetes-pod-monitor.yaml")
	pod := all["Job"].(*batch.Job).Spec.Template
	secret := decode(t, "secret-pod-monitor.yaml")["Secret"].(*core.Secret)
	spec := all["PodMonitor"].(*monitoring.PodMonitor).Spec
	endpoint := spec.PodMetricsEndpoints[0]
	var port int32
	for _, p := range pod.Spec.Containers[0].Ports {
		if p.Name == *endpoint.Port {
			port = p.ContainerPort
		}
	}
	for key, value := range spec.Selector.MatchLabels {
		if pod.Labels[key] != value {
			t.Error("it finds the pods")
		}
	}
	rules := all["NetworkPolicy"].(*networking.NetworkPolicy).Spec.Ingress
	ca, token := endpoint.TLSConfig.CA.Secret, endpoint.Authorization.Credentials
	switch {
	case port == 0, *endpoint.Scheme != "https":
		t.Errorf("the page is at %d by %v", port, *endpoint.Scheme)
	case len(rules) != 2, rules[1].Ports[0].Port.IntVal != port, rules[1].From[0].NamespaceSelector == nil:
		t.Error("Prometheus may speak to the page, and to nothing else")
	case ca.Name != secret.Name, secret.StringData[ca.Key] == "", token.Name != secret.Name, secret.StringData[token.Key] == "":
		t.Error("it knows the page, and the page knows it")
	case endpoint.RelabelConfigs[0].Regex != "0":
		t.Error("the coordinator alone has a page")
	}
	if name := all["Service"].(*core.Service).Name; *endpoint.TLSConfig.ServerName != name+"-0."+name {
		t.Error("the certificate's name is that of the coordinator")
	}
}

// TestCertificatesAreMounted holds that each has the role, and that all of it is where a pod looks for it.
func TestCertificatesAreMounted(t *testing.T) {
	all := decode(t, "kubernetes-cert-manager.yaml")
	pod := all["Job"].(*batch.Job).Spec.Template.Spec
	name := all["Service"].(*core.Service).Name
	host := name + "-0." + name
	paths := map[string]bool{}
	for _, v := range pod.Volumes {
		if v.Projected == nil {
			continue
		}
		for _, source := range v.Projected.Sources {
			c := all["Certificate "+source.Secret.Name].(*certmanager.Certificate)
			for _, item := range source.Secret.Items {
				paths[item.Path] = true
				if role := filepath.Dir(item.Path); len(c.Spec.URIs) != 1 || c.Spec.URIs[0] != "loadgen://role/"+role || c.Name != name+"-"+role {
					t.Errorf("%s is of %s, for %v", item.Path, c.Name, c.Spec.URIs)
				}
			}
			if c.Spec.SecretName != c.Name || c.Spec.IssuerRef.Kind != "ClusterIssuer" || c.Spec.Duration.Duration <= c.Spec.RenewBefore.Duration {
				t.Errorf("%+v", c.Spec)
			}
		}
	}
	for _, role := range []string{"coordinator", "worker"} {
		for _, name := range []string{"ca.crt", "tls.crt", "tls.key"} {
			if !paths[role+"/"+name] {
				t.Errorf("no %s of the %s", name, role)
			}
		}
	}
	if c := all["Certificate nightly-coordinator"].(*certmanager.Certificate); len(c.Spec.DNSNames) != 1 || c.Spec.DNSNames[0] != host {
		t.Errorf("workers look for %s", host)
	}
	for _, arg := range pod.Containers[0].Args {
		if strings.HasPrefix(arg, "--credentials") {
			t.Error("there is no Secret of that kind")
		}
	}
}

// TestSecretIsOfTheAPI holds what the pods read.
func TestSecretIsOfTheAPI(t *testing.T) {
	s := decode(t, "secret.yaml")["Secret"].(*core.Secret)
	if s.StringData["token"] == "" || !strings.HasPrefix(s.StringData["authority.pem"], "-----BEGIN PRIVATE KEY-----\n") {
		t.Errorf("%v", s.StringData)
	}
}
