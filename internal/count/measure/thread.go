package measure

// Thread says where a thread that executed ops itself ran. Numbers are the kernel's; −1 if it gives none.
type Thread struct {
	Session   int  `json:"session"`  // first session of the thread
	Sessions  int  `json:"sessions"` // number of consecutive sessions
	Pinned    bool `json:"pinned"`   // to CPU, by the worker's --pin
	CPU       int  `json:"cpu"`      // when the load began
	CPUAtEnd  int  `json:"cpu_at_end"`
	Node      int  `json:"node"` // NUMA node of CPU
	NodeAtEnd int  `json:"node_at_end"`
}
