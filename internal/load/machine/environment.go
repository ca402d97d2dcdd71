package machine

import (
	"github.com/loadgen/loadgen/internal/base/reason"
)

// Environment describes the machine and process that coordinated the run. A text that could not be read is "".
type Environment struct {
	Go          string `json:"go"`
	OS          string `json:"os"`
	Arch        string `json:"arch"`
	Kernel      string `json:"kernel"`
	Hostname    string `json:"hostname"`
	CPUModel    string `json:"cpu_model"`
	CPUs        int    `json:"cpus"` // number of CPUs that this process may use
	GOMAXPROCS  int    `json:"gomaxprocs"`
	LoopCPUs    string `json:"loop_cpus"` // the CPUs that event loops kept to, such as 4-7, while built-in nodes had NodeCPUs; "" if they were not divided
	NodeCPUs    string `json:"node_cpus"`
	ClockSource string `json:"clock_source"`
	Governor    string `json:"governor"` // CPU frequency governor of the first CPU

	CgroupCPUs       *float64 `json:"cgroup_cpus"`        // CPU seconds per second that the control group may use
	MemoryBytes      *int64   `json:"memory_bytes"`       // of the machine
	MemoryLimitBytes *int64   `json:"memory_limit_bytes"` // of the control group
	FDSoft           *int64   `json:"fd_soft"`            // open files, soft limit
	FDHard           *int64   `json:"fd_hard"`

	// Servers is what each endpoint reported about itself, by target and endpoint: Servers["space"]["127.0.0.1:7001"]["version"].
	Servers map[string]map[string]map[string]string `json:"servers"`

	Nulls     map[string]string      `json:"nulls"`      // why a field is null or ""
	NullCodes map[string]reason.Code `json:"null_codes"` // of Nulls; empty in results of an older form
}

// Codes of reasons why a fact of the environment is null.
const (
	unlimited  reason.Code = "unlimited"  // the machine does not set this limit
	unreadable reason.Code = "unreadable" // the machine does not report it, or not in a known form
)

// Null records why a fact is null or "". If unbounded, the machine sets no such limit; otherwise it could not be read.
func (e *Environment) Null(fact, why string, unbounded bool) {
	if e.Nulls == nil {
		e.Nulls, e.NullCodes = map[string]string{}, map[string]reason.Code{}
	}
	e.Nulls[fact], e.NullCodes[fact] = why, unreadable
	if unbounded {
		e.NullCodes[fact] = unlimited
	}
}
