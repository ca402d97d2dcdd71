package machine

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/loadgen/loadgen/internal/count/measure"
)

// ticks is the kernel's unit in proc/stat and proc/PID/stat, per second: USER_HZ is 100 on every architecture that Go runs on (proc(5)).
const ticks = 100

// leastWatch is the shortest time, in seconds, for which shares are computed: in less, a tick at either end matters too much.
const leastWatch = 1

// Watch measures who used the processors that this process and its target may run on: all of them together, and those of each process by themselves.
// A server that is bound to one processor starves there, however idle the others are.
type Watch struct {
	root    fs.FS
	servers []int // processes of the target; their descendants count as well
	allowed map[int][]int
	places  []place
}

// place is a set of processors, with their counters at the beginning of the watch.
type place struct {
	cpus  []int
	began processors
	spent int64 // ticks spent by this process and the target
}

// processors says how a set of processors has spent its time since boot, in ticks.
type processors struct{ all, idle, used int64 }

// self stands for this process in place of its number.
const self = 0

// NewWatch begins to watch. servers are the target's processes on this machine, as found by [Servers].
func NewWatch(root fs.FS, servers []int) (*Watch, error) {
	w := &Watch{root: root, servers: servers, allowed: map[int][]int{}}
	var together []int
	for _, pid := range append([]int{self}, servers...) {
		cpus, err := allowed(root, pid)
		if err != nil {
			return nil, err
		}
		w.allowed[pid] = cpus
		together = append(together, cpus...)
	}
	slices.Sort(together)
	w.add(slices.Compact(together))
	for _, pid := range slices.Sorted(maps.Keys(w.allowed)) {
		w.add(w.allowed[pid])
	}
	return w, w.read(func(p *place, now processors, spent int64) { p.began, p.spent = now, spent })
}

// add watches some processors, unless they are watched already.
func (w *Watch) add(cpus []int) {
	if !slices.ContainsFunc(w.places, func(p place) bool { return slices.Equal(p.cpus, cpus) }) {
		w.places = append(w.places, place{cpus: cpus})
	}
}

// read calls tell with the current counters of each place.
func (w *Watch) read(tell func(p *place, now processors, spent int64)) error {
	own, err := w.own()
	if err != nil {
		return err
	}
	for i := range w.places {
		p := &w.places[i]
		now, err := readProcessors(w.root, p.cpus)
		if err != nil {
			return err
		}
		spent := int64(0)
		for pid, ticks := range own {
			if slices.ContainsFunc(w.allowed[pid], func(cpu int) bool { return slices.Contains(p.cpus, cpu) }) {
				spent += ticks
			}
		}
		tell(p, now, spent)
	}
	return nil
}

// Stop says who used the processors since the watch began. Of several places, it reports the one with most reason for doubt. Interrupt time is
// attributed to no process; time that a hypervisor took counts as others'. A process of ours that may also run elsewhere counts as if it had spent
// all of its time at the place, so that the share of others is never overstated.
func (w *Watch) Stop() (measure.Machine, error) {
	var worst measure.Machine
	short := false
	err := w.read(func(p *place, now processors, spent int64) {
		all := now.all - p.began.all
		if all < leastWatch*ticks*int64(len(p.cpus)) {
			short = true
			return
		}
		share := func(n int64) float64 { return min(1, max(0, float64(n)/float64(all))) }
		m := measure.Machine{IdleShare: share(now.idle - p.began.idle), Seconds: float64(all) / ticks}
		m.OthersShare = min(1-m.IdleShare, share(now.used-p.began.used-(spent-p.spent)))
		if worst.Seconds == 0 || m.Worse(&worst) {
			worst = m
		}
	})
	if err == nil && short {
		err = fmt.Errorf("the load took less than %d s, and the kernel counts processor time in ticks of 10 ms", leastWatch)
	}
	if err != nil {
		return measure.Machine{}, err
	}
	worst.Host = Boot(w.root)
	return worst, nil
}

// Boot returns the id that the kernel gives to this machine, and to every container on it, until it is restarted; "" if there is none.
func Boot(root fs.FS) string {
	host := environment{root: root}
	return host.line("host", "proc/sys/kernel/random/boot_id")
}

// allowed returns the processors that a process may run on, in order.
func allowed(root fs.FS, pid int) ([]int, error) {
	name := "proc/self"
	if pid != self {
		name = "proc/" + strconv.Itoa(pid)
	}
	r := environment{root: root}
	cpus, err := ParseList(r.field("cpus", name+"/status", "Cpus_allowed_list"))
	if err != nil || len(cpus) == 0 {
		return nil, fmt.Errorf("%s/status does not say which processors the process may use", name)
	}
	slices.Sort(cpus)
	return slices.Compact(cpus), nil
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

// own returns the ticks that this process and each process of the target, with its descendants, have used since they started.
func (w *Watch) own() (map[int]int64, error) {
	me, err := readProcess(w.root, "self")
	own := map[int]int64{self: me.used}
	if err != nil || len(w.servers) == 0 {
		return own, err
	}
	every, err := processes(w.root)
	if err != nil {
		return nil, err
	}
	for _, pid := range w.servers {
		if _, ok := every[pid]; !ok {
			return nil, fmt.Errorf("process %d of the target has ended", pid)
		}
	}
	for pid, p := range every {
		if of, ok := ancestor(every, pid, w.servers); ok && pid != me.pid {
			own[of] += p.used + p.children
		}
	}
	return own, nil
}

// ancestor returns the server that a process is, or descends from; false if there is none. Descendants of process 1 may be anything.
func ancestor(every map[int]process, pid int, servers []int) (int, bool) {
	for at, depth := pid, 0; depth < len(every); depth++ {
		if slices.Contains(servers, at) && (at != 1 || pid == 1) {
			return at, true
		}
		p, ok := every[at]
		if !ok {
			break
		}
		at = p.parent
	}
	return 0, false
}

// process is what the kernel says about a process. Times are in ticks.
type process struct {
	pid, parent    int
	used, children int64 // children is the time of the children that it has waited for
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
