package prom

import (
	"encoding/json"
	"io"
	"net/http"
	"net/netip"

	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/loadgen/loadgen/internal/load/worker"
)

// maxScrapes bounds the scrapes served at the same time.
const maxScrapes = 4

// Handler serves, to GET and HEAD only:
//
//	/metrics   c's page: text, OpenMetrics or protobuf, as the client asks; native histograms in protobuf only
//	/sd        on a coordinator, the workers that have a page, as Prometheus' HTTP service discovery wants them; each has the
//	           meta label __meta_loadgen_worker
//	/healthz   200 while the process can answer
//
// A worker's page also has the usual process_… metrics of its process. All other paths are not found.
func Handler(c *Collector) http.Handler {
	registry := c.Registry()
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", c.noting(promhttp.HandlerFor(registry, promhttp.HandlerOpts{
		EnableOpenMetrics:   true,
		MaxRequestsInFlight: maxScrapes,
	})))
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		_, _ = io.WriteString(w, "ok\n") // an error means that the client is gone
	})
	if c.workers == nil {
		registry.MustRegister(collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
		return mux
	}
	mux.HandleFunc("GET /sd", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json; charset=utf-8")
		_ = json.NewEncoder(w).Encode(groups(c.workers())) // an error means that the client is gone
	})
	return mux
}

// group is an element of the document that Prometheus' HTTP service discovery reads.
type group struct {
	Targets []string          `json:"targets"`
	Labels  map[string]string `json:"labels"`
}

// groups returns a group for each worker that has a page, since labels belong to a group. The document is a list even if it is empty.
func groups(workers []worker.Status) []group {
	list := []group{}
	for _, w := range workers {
		if w.Metrics != "" {
			g := group{Targets: []string{w.Metrics}, Labels: map[string]string{"__meta_loadgen_worker": w.Name}}
			if at, err := netip.ParseAddrPort(w.Metrics); err == nil && !at.Addr().IsLoopback() {
				g.Labels["__scheme__"] = "https" // nothing else is served there
			}
			list = append(list, g)
		}
	}
	return list
}
