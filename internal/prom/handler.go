package prom

import (
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/netip"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// maxScrapes bounds the pages made at the same time.
const maxScrapes = 4

// Handler serves, to GET and HEAD only:
//
//	/metrics   c's page: text, OpenMetrics or protobuf, as the client asks; native histograms in protobuf only
//	/sd        on a coordinator, the workers that have a page, as Prometheus' HTTP service discovery wants them; each has the
//	           meta label __meta_loadgen_worker
//	/healthz   200 while the process can answer
//
// A worker's page also has facts about its process, under the names that all programs use for them, process_…. All else is not found. A
// request whose Host is neither localhost nor a loopback address is refused: it comes from a browser that was told by someone's
// name server that their site is here.
func Handler(c *Collector) http.Handler {
	registry := prometheus.NewRegistry()
	registry.MustRegister(c)
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", c.noting(promhttp.HandlerFor(registry, promhttp.HandlerOpts{
		EnableOpenMetrics:   true,
		MaxRequestsInFlight: maxScrapes,
	})))
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		_, _ = io.WriteString(w, "ok\n") // the client is gone if it fails
	})
	if c.workers == nil {
		registry.MustRegister(collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
		return loopbackHost(mux)
	}
	mux.HandleFunc("GET /sd", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json; charset=utf-8")
		_ = json.NewEncoder(w).Encode(groups(c.workers())) // likewise
	})
	return loopbackHost(mux)
}

// group is an element of the document that Prometheus' HTTP service discovery reads.
type group struct {
	Targets []string          `json:"targets"`
	Labels  map[string]string `json:"labels"`
}

// groups returns a group for each worker that has a page: labels belong to a group. The document is a list, also when it is empty.
func groups(workers []Worker) []group {
	list := []group{}
	for _, w := range workers {
		if w.Metrics != "" {
			list = append(list, group{Targets: []string{w.Metrics}, Labels: map[string]string{"__meta_loadgen_worker": w.Name}})
		}
	}
	return list
}

// loopbackHost lets requests pass that were made to this machine by one of its own names.
func loopbackHost(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-Content-Type-Options", "nosniff")
		if !isLoopbackHost(r.Host) {
			http.Error(w, "this server answers to localhost and loopback addresses only", http.StatusForbidden)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// isLoopbackHost takes the content of a Host header (RFC 9110, section 7.2): a host, and a port or none.
func isLoopbackHost(host string) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	} else if name, ok := strings.CutPrefix(host, "["); ok {
		host = strings.TrimSuffix(name, "]")
	}
	if strings.EqualFold(host, "localhost") {
		return true
	}
	ip, err := netip.ParseAddr(host)
	return err == nil && ip.IsLoopback()
}
