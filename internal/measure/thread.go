package measure

// Thread is where a thread ran that carried ops out itself. Numbers are the kernel's; −1: it names none.
type Thread struct {
	Session   int  `json:"session"`  // the first that was its
	Sessions  int  `json:"sessions"` // that follow each other
	Pinned    bool `json:"pinned"`   // to its CPU, by the worker's --pin
	CPU       int  `json:"cpu"`      // as the load began
	CPUAtEnd  int  `json:"cpu_at_end"`
	Node      int  `json:"node"` // NUMA node of CPU
	NodeAtEnd int  `json:"node_at_end"`
}
