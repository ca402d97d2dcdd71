package plan

import (
	"github.com/loadgen/loadgen/pkg/driver"
	"github.com/loadgen/loadgen/pkg/driver/localfile"
)

// Kept says what a phase keeps on a worker that carries out all of it.
type Kept struct {
	Disk   int64 // bytes of log files, including those that earlier phases made for later ones
	Memory int64 // bytes beside them, on top of [Load.Memory]
	Short  error // why one worker cannot carry it out, though several may
}

// Keeps returns what each phase keeps in files on a worker's own machine, in order of phases. It is nil when no target has such files.
func (p *Plan) Keeps(drivers []driver.Driver) []Kept {
	kept, any := make([]Kept, len(p.Phases)), false
	for _, t := range p.Targets {
		local, ok := driverNamed(drivers, t.Driver).(localfile.Driver)
		if !ok {
			continue
		}
		any = true
		p.keep(t, local, kept)
	}
	if !any {
		return nil
	}
	return kept
}

// keep adds a target's files to each phase from the target's first to its last, including phases of other targets in between.
func (p *Plan) keep(t *Target, local localfile.Driver, kept []Kept) {
	var phases []int
	for i, ph := range p.Phases {
		if ph.Target == t.Name {
			phases = append(phases, i)
		}
	}
	had, held, disk := map[int]bool{}, map[string]bool{}, int64(0)
	for n, i := range phases {
		site := p.site(p.Phases[i], p.Phases[i].Sessions())
		site.Fresh, site.Had, site.Held = n == 0, had, held[p.Phases[i].Dataset]
		need, err := local.Need(t.Config, site)
		if err != nil {
			kept[i].Short = err
		}
		held[p.Phases[i].Dataset] = true
		for s := range site.To {
			had[s] = true
		}
		disk, kept[i].Memory = add(disk, need.Bytes), need.Memory
		until := i + 1
		if n+1 < len(phases) {
			until = phases[n+1]
		}
		for j := i; j < until; j++ {
			kept[j].Disk = add(kept[j].Disk, disk)
		}
	}
}

// site describes that many sessions of a phase on a single worker, as far as the plan knows.
func (p *Plan) site(ph *Phase, sessions int) localfile.Site {
	d := p.Dataset(ph.Dataset)
	sizes, _ := d.Values.Drawn(localfile.StampSize) // mistakes in them are reported elsewhere
	return localfile.Site{
		Name: ph.Target, To: sessions, Sessions: ph.Sessions(), Fresh: true, Value: driver.Value{Size: d.Values.Size}, Sizes: sizes,
		Keys: d.Keys.Count, Pools: d.Keys.PerSession(),
	}
}
