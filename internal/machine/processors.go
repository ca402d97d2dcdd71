package machine

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strconv"
	"strings"

	"github.com/loadgen/loadgen/internal/measure"
)

// ticks is the kernel's unit in proc/stat and proc/PID/stat, per second: USER_HZ is 100 on every architecture that Go runs on (proc(5)).
const ticks = 100

// leastWatch is the shortest time, in seconds, for which shares are computed: in less, a tick at either end matters too much.
const leastWatch = 1

// Watch measures who used the processors that this process and its target may run on.
type Watch struct {
	root    fs.FS
	servers []int // processes of the target; their descendants count as well
	began   processors
	spent   int64 // by this process and the target, in ticks
	cpus    []int
}

// processors is how some processors spent their time since boot, in ticks.
type processors struct{ all, idle, used int64 }

// NewWatch begins to watch. servers are the target's processes on this machine, as found by [Servers].
func NewWatch(root fs.FS, servers []int) (*Watch, error) {
	w := &Watch{root: root, servers: servers}
	err := w.allowed()
	if err != nil {
		return nil, err
	}
	if w.spent, err = w.own(); err != nil {
		return nil, err
	}
	w.began, err = readProcessors(root, w.cpus)
	return w, err
}

// Stop says who used the processors since the watch began. Interrupt time belongs to nobody; time that a hypervisor took belongs to others.
func (w *Watch) Stop() (measure.Machine, error) {
	now, err := readProcessors(w.root, w.cpus)
	if err != nil {
		return measure.Machine{}, err
	}
	spent, err := w.own()
	if err != nil {
		return measure.Machine{}, err
	}
	all := now.all - w.began.all
	if all < leastWatch*ticks*int64(len(w.cpus)) {
		return measure.Machine{}, fmt.Errorf("the load took less than %d s, and the kernel counts processor time in ticks of 10 ms", leastWatch)
	}
	share := func(n int64) float64 { return min(1, max(0, float64(n)/float64(all))) }
	m := measure.Machine{IdleShare: share(now.idle - w.began.idle), Seconds: float64(all) / ticks}
	m.OthersShare = min(1-m.IdleShare, share(now.used-w.began.used-(spent-w.spent)))
	host := environment{root: w.root, nulls: map[string]null{}}
	m.Host = host.line("host", "proc/sys/kernel/random/boot_id")
	return m, nil
}

// allowed notes the processors that this process, or one of the target's, may run on.
func (w *Watch) allowed() error {
	of := []string{"self"}
	for _, pid := range w.servers {
		of = append(of, strconv.Itoa(pid))
	}
	for _, pid := range of {
		r := environment{root: w.root, nulls: map[string]null{}}
		text := r.field("cpus", "proc/"+pid+"/status", "Cpus_allowed_list")
		cpus, err := parseList(text)
		if err != nil || len(cpus) == 0 {
			return fmt.Errorf("proc/%s/status does not say which processors the process may use", pid)
		}
		w.cpus = append(w.cpus, cpus...)
	}
	slices.Sort(w.cpus)
	w.cpus = slices.Compact(w.cpus)
	return nil
}

// readProcessors sums the lines of some processors in proc/stat: "cpu0 user nice system idle iowait irq softirq steal …".
func readProcessors(root fs.FS, cpus []int) (p processors, err error) {
	b, err := fs.ReadFile(root, "proc/stat")
	if err != nil {
		return p, err
	}
	const user, nice, system, idle, iowait, steal, known = 0, 1, 2, 3, 4, 7, 8
	for line := range strings.Lines(string(b)) {
		words := strings.Fields(line)
		if len(words) <= known || !strings.HasPrefix(words[0], "cpu") {
			continue
		}
		cpu, err := strconv.Atoi(words[0][len("cpu"):])
		if err != nil || !slices.Contains(cpus, cpu) {
			continue
		}
		var n [known]int64
		for i := range n {
			if n[i], err = strconv.ParseInt(words[1+i], 10, 64); err != nil {
				return p, fmt.Errorf("proc/stat: %w", err)
			}
			p.all += n[i]
		}
		p.idle += n[idle] + n[iowait]
		p.used += n[user] + n[nice] + n[system] + n[steal]
	}
	if p.all == 0 {
		return p, errors.New("proc/stat says nothing of the processors that the process may use")
	}
	return p, nil
}

// own is what this process and the target's processes, with their descendants, have used since they started, in ticks.
func (w *Watch) own() (int64, error) {
	self, err := readProcess(w.root, "self")
	if err != nil || len(w.servers) == 0 {
		return self.used, err
	}
	every, err := processes(w.root)
	if err != nil {
		return 0, err
	}
	sum := self.used
	for _, pid := range w.servers {
		if _, ok := every[pid]; !ok {
			return 0, fmt.Errorf("process %d of the target has ended", pid)
		}
	}
	for pid, p := range every {
		if pid == self.pid || !belongs(every, pid, w.servers) {
			continue
		}
		sum += p.used + p.children
	}
	return sum, nil
}

// belongs says whether a process is one of the servers or a descendant of one. Descendants of process 1 may be anything.
func belongs(every map[int]process, pid int, servers []int) bool {
	for at, depth := pid, 0; depth < len(every); depth++ {
		if slices.Contains(servers, at) && (at != 1 || pid == 1) {
			return true
		}
		p, ok := every[at]
		if !ok {
			return false
		}
		at = p.parent
	}
	return false
}

// process is what the kernel says about a process. Times are in ticks.
type process struct {
	pid, parent    int
	used, children int64 // children: those it has waited for
}

// readProcess reads proc/PID/stat. Field 1 is the PID, field 2 the name in parentheses, which may contain anything, field 4 the parent. Fields 14 to
// 17 are user and system time of the process and of its children.
func readProcess(root fs.FS, pid string) (p process, err error) {
	name := "proc/" + pid + "/stat"
	b, err := fs.ReadFile(root, name)
	if err != nil {
		return p, err
	}
	text := string(b)
	words := strings.Fields(text[strings.LastIndexByte(text, ')')+1:])
	first, _, _ := strings.Cut(text, " ")
	if len(words) < 15 {
		return p, fmt.Errorf("%s has too few fields", name)
	}
	var n [6]int64
	for i, word := range []string{first, words[1], words[11], words[12], words[13], words[14]} {
		if n[i], err = strconv.ParseInt(word, 10, 64); err != nil {
			return p, fmt.Errorf("%s: %w", name, err)
		}
	}
	return process{pid: int(n[0]), parent: int(n[1]), used: n[2] + n[3], children: n[4] + n[5]}, nil
}

// processes reads all visible processes, except those that end meanwhile.
func processes(root fs.FS) (map[int]process, error) {
	entries, err := fs.ReadDir(root, "proc")
	if err != nil {
		return nil, err
	}
	every := map[int]process{}
	for _, e := range entries {
		if _, err := strconv.Atoi(e.Name()); err != nil {
			continue
		}
		if p, err := readProcess(root, e.Name()); err == nil {
			every[p.pid] = p
		}
	}
	return every, nil
}
