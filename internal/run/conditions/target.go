package conditions

// Target is what the phase was run against.
type Target struct {
	Name        string       `json:"name"`
	Driver      string       `json:"driver"`
	Builtin     bool         `json:"builtin"`     // built-in nodes started for this run
	TLS         bool         `json:"tls"`         // connections were encrypted
	Endpoints   []string     `json:"endpoints"`   //
	Placement   string       `json:"placement"`   // "ketama" or "rendezvous"
	Replication *Replication `json:"replication"` // null: each key lives on one endpoint
}

// Replication says on how many endpoints a key lived and how many answers made an op.
type Replication struct {
	Coordinate string `json:"coordinate"`
	N          int    `json:"n"`
	W          int    `json:"w"`
	R          int    `json:"r"`
	ReadFanout string `json:"read_fanout"`
	ReadFrom   string `json:"read_from"`
}

// InCluster says whether keys stood where a cluster says.
func (t *Target) InCluster() bool { return t.Placement == "slots" }

// Ranked says whether keys stood by the highest random weight, and not on a ring.
func (t *Target) Ranked() bool { return t.Placement == "rendezvous" }

// AsksAll says whether a get asked all nodes that have its key, and not as many as answers it takes.
func (r *Replication) AsksAll() bool { return r.ReadFanout != "r" }

// AtRandom says whether a get that did not ask all chose among them, and did not take the first.
func (r *Replication) AtRandom() bool { return r.ReadFrom == "random" }

// ByClient says whether loadgen asked the nodes itself.
func (r *Replication) ByClient() bool { return r.Coordinate == "client" }
