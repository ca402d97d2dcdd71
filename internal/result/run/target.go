package run

// Target describes what a phase ran against.
type Target struct {
	Name        string       `json:"name"`
	Driver      string       `json:"driver"`
	Builtin     bool         `json:"builtin"`     // built-in nodes, started for this run
	TLS         bool         `json:"tls"`         // connections were encrypted
	Endpoints   []string     `json:"endpoints"`   //
	Placement   string       `json:"placement"`   // "ketama", "rendezvous" or "slots"
	Replication *Replication `json:"replication"` // null if each key lives on one endpoint
}

// Replication says how many endpoints held each key and how many answers completed an op.
type Replication struct {
	Coordinate string `json:"coordinate"`
	N          int    `json:"n"`
	W          int    `json:"w"`
	R          int    `json:"r"`
	ReadFanout string `json:"read_fanout"`
	ReadFrom   string `json:"read_from"`
}

// InCluster says whether a cluster determined where keys were.
func (t *Target) InCluster() bool { return t.Placement == "slots" }

// Ranked says whether keys were placed by highest random weight, and not on a ring.
func (t *Target) Ranked() bool { return t.Placement == "rendezvous" }

// AsksAll says whether a get asked all nodes that hold its key, and not only as many as the answers it needs.
func (r *Replication) AsksAll() bool { return r.ReadFanout != "r" }

// AtRandom says whether a get that did not ask all nodes chose them at random, and not the first ones.
func (r *Replication) AtRandom() bool { return r.ReadFrom == "random" }

// ByClient says whether loadgen itself asked the nodes.
func (r *Replication) ByClient() bool { return r.Coordinate == "client" }
