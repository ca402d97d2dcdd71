package run

// Objective is one limit of a search, on the response times of an op.
type Objective struct {
	Op           string  `json:"op"`       // "" for every op
	Quantile     string  `json:"quantile"` // "p50", "p90", "p95", "p99" or "p99.9"
	LimitSeconds float64 `json:"limit_seconds"`
}
