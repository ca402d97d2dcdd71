package log

import (
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"sort"
	"syscall"

	"github.com/loadgen/loadgen/pkg/driver"
	"github.com/loadgen/loadgen/pkg/driver/localfile"
	"github.com/loadgen/loadgen/pkg/pmem"
	"github.com/loadgen/loadgen/pkg/pmlog"
)

// Memory that a log takes in the process, in bytes.
const (
	slotMemory  = 192 // per slot of an array: for layout, driver and claim
	pieceMemory = 64  // per piece of a raw file: for its claim
)

// design describes the logs of a site's sessions.
type design struct {
	form    form
	sharing int   // number of sessions that share a log
	size    int64 // size of a log's file, in bytes
	side    int64 // size of its side file, in bytes; 0 if it has none
	entries int64 // number of entries that fit in a log
}

// leastBlock is the smallest number of bytes that a device writes.
const leastBlock = 512

// fits returns an error unless entries are whole blocks.
func (k kind) fits(block int64) error {
	if int64(k.Size)%block == 0 {
		return nil
	}
	return fmt.Errorf("entries of %d bytes, and sync = %q writes whole blocks of %d; write a multiple of %d as the size of the dataset's values, or sync = %q",
		k.Size, pmem.ODirect, block, block, pmem.ODsync)
}

// design returns an error if the values, or that many sessions, do not fit.
func (c *Config) design(site localfile.Site) (design, error) {
	d := design{sharing: site.To - site.From}
	if site.Value.Size < localfile.StampSize {
		return d, fmt.Errorf("entries of %d bytes; write %d or more in the dataset", site.Value.Size, localfile.StampSize)
	}
	if c.Sync == string(pmem.ODirect) {
		if err := (kind{Size: site.Value.Size}).fits(leastBlock); err != nil {
			return d, err
		}
	}
	if c.Sync == string(pmem.ODirect) && site.Sizes != nil {
		return d, fmt.Errorf("entries of many sizes with sync = %q, which writes whole blocks; write one size in the dataset, or sync = %q", pmem.ODirect, pmem.ODsync)
	}
	if c.Share == "session" {
		d.sharing = 1
	}
	slots := site.Keys
	if site.Pools {
		slots *= int64(d.sharing)
	}
	if c.Layout == layoutArray && slots > math.MaxInt32 {
		return d, fmt.Errorf("%d slots are too many; write a smaller keys { count = … }", slots)
	}
	d.form = form{
		Layout: c.Layout, Kind: kind{epochOf(site.Epoch), site.Value.Size, site.Sizes, site.Value.Fill}, Slots: int(slots), Padding: c.Padding, Order: c.Order, Commit: c.Commit, CRC: c.CRC,
		Prealloc: c.Prealloc, Rotate: c.Full == rotate, Group: c.group(),
	}
	if c.Layout == layoutChannel {
		d.side = pmlog.SideSize
	}
	var err error
	if d.size, d.entries, err = d.form.fileSize(int64(c.FileSize)); err != nil {
		return d, err
	}
	switch n := int64(d.sharing); {
	case c.Layout == layoutArray && slots < n:
		err = fmt.Errorf("%d slots for %d sessions; write keys { count = %d } or more in the dataset, or fewer sessions", slots, n, n)
	case c.Layout == layoutRaw && d.entries < n:
		err = fmt.Errorf("%d entries fit into the file, and it has %d sessions; write a larger file_size, or fewer sessions", d.entries, n)
	}
	if c.Prealloc == string(pmem.Extending) && c.Share != "session" && site.Sessions > 1 {
		err = errors.Join(err, fmt.Errorf(`%d sessions share a file, and prealloc is "none": only one can extend it; write share = "session"`, site.Sessions))
	}
	return d, err
}

// new reports whether the log whose first session is from did not exist in an earlier phase.
func (d *design) new(c *Config, site *localfile.Site, from int) bool {
	return site.Fresh || c.renews() || c.Share == "session" && site.Had != nil && !site.Had[from]
}

// Need implements localfile.Driver.
func (Driver) Need(config any, site localfile.Site) (localfile.Need, error) {
	c := config.(*Config)
	d, err := c.design(site)
	if err != nil {
		return localfile.Need{}, err
	}
	return d.need(c, &site), nil
}

func (d *design) need(c *Config, site *localfile.Site) localfile.Need {
	var n localfile.Need
	all := int64(0)
	for from := site.From; from < site.To; from += d.sharing {
		all++
		if d.new(c, site, from) {
			n.Logs++
		}
	}
	n.Bytes = int64(n.Logs) * (int64(d.form.files())*d.size + d.side)
	n.Memory = int64(site.To-site.From) * int64(places*step+d.form.Kind.Size)
	switch c.Layout {
	case layoutArray:
		n.Slots, n.Value = int64(d.form.Slots), d.form.Kind.Size
		n.Memory += all * n.Slots * slotMemory
	case layoutChannel:
		n.Value = d.form.Kind.Size
	case layoutRaw:
		n.Memory += all * d.size / int64(d.form.Kind.least()) * pieceMemory
	}
	return n
}

// room is the space that a machine has left, in bytes.
type room struct {
	disk, memory int64
	place        pmem.Place
}

// short reports whether disk or memory falls short of the need. A file system in memory takes memory.
func (r *room) short(need localfile.Need) (disk, memory bool) {
	if r.place.Volatile() {
		need.Memory += need.Bytes
	}
	return need.Bytes > r.disk, r.memory > 0 && need.Memory > r.memory
}

// checkRoom returns an error unless there is room for the files to be made.
func (s *store) checkRoom(d *design) error {
	r := room{memory: s.site.Memory()}
	var err error
	if r.disk, r.place, err = pmem.Room(s.root.Root); err != nil {
		return err
	}
	need := d.need(s.cfg, &s.site)
	disk, memory := r.short(need)
	if need.Logs == 0 || !disk && !memory {
		return nil
	}
	have := about(r.disk) + " are free"
	if memory && (!disk || r.memory < r.disk) {
		have = about(r.memory) + " of memory are available"
	}
	return fmt.Errorf("make log files of %s in %s on %s: %s: %w: %s, or another --log-root",
		about(need.Bytes), s.root.Name(), r.place, have, syscall.ENOSPC, s.fitting(&r))
}

// fitting says how many keys, or how large a file, would fit.
func (s *store) fitting(r *room) string {
	c, site := *s.cfg, s.site
	most := func(n int, set func(n int)) int {
		return sort.Search(n, func(n int) bool {
			set(n + 1)
			need, err := Driver{}.Need(&c, site)
			disk, memory := r.short(need)
			return err == nil && (disk || memory)
		})
	}
	if c.Layout == layoutArray {
		return fmt.Sprintf("write keys { count = %d } or less in the dataset", most(int(site.Keys), func(n int) { site.Keys = int64(n) }))
	}
	asked := int64(c.FileSize)
	if n := most(int(asked>>20), func(n int) { c.FileSize = driver.Size(n) << 20 }); n > 0 {
		return fmt.Sprintf("write file_size = \"%dMiB\" or less in the target", n)
	}
	return fmt.Sprintf("write file_size = \"%dKiB\" or less in the target", most(int(asked>>10), func(n int) { c.FileSize = driver.Size(n) << 10 }))
}

// about formats n bytes, rounded down to a whole number of a unit.
func about(n int64) string {
	for i, unit := range []string{"TiB", "GiB", "MiB", "KiB"} {
		if one := int64(1) << (40 - 10*i); n >= 10*one {
			return fmt.Sprintf("%d %s", n/one, unit)
		}
	}
	return fmt.Sprintf("%d bytes", n)
}

// fileName returns the name of the log whose first session is from.
func (s *store) fileName(from int) string {
	name := fmt.Sprintf("%s-w%d", s.site.Name, s.site.Worker)
	if s.cfg.Share == "session" {
		name += fmt.Sprintf("-s%d", from)
	}
	return name + ".pmlog"
}

// path returns the path of a file of the store.
func (s *store) path(name string) string { return filepath.Join(s.root.Name(), name) }
