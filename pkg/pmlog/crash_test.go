package pmlog

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/loadgen/loadgen/internal/servertest"
	"github.com/loadgen/loadgen/pkg/pmem/pmemtest"
)

// history is the life of a log whose power fails again and again, driven by a seed. At each fence, before it takes effect, and after each call it
// checks what a crash could leave: nothing else adds to the images or to what was promised.
type history struct {
	kind  kind
	seed  uint64
	rng   *rand.Rand
	limit int                    // images at one point
	seen  map[uint64]struct{}    // hashes of images
	drop  func(site string) bool // whether a flush or fence does nothing
	sites map[string]bool        // those there are, and whether they did too much

	trace    *pmemtest.Trace
	model    *model
	creating bool
	storing  func() // stores more to a grouped log while a fence is under way
	survivor []byte // the image that the last crash left
	killed   bool   // the process was killed, and what it stored is there as long as there is power
	writes   int
	err      error // the first violation
}

const lives = 6

// errMedium is a fence's error, which ends the life of a log as a loss of power does.
var errMedium = errors.New("input/output error")

// run returns the first violation.
func (h *history) run() error {
	h.rng = rand.New(rand.NewPCG(h.seed, 0))
	h.model = newModel(h.kind)
	h.attach(pmemtest.New(h.seed, h.kind.sizes...))
	h.creating = true
	s, err := h.kind.create(h.kind.traced(h.trace))
	h.creating = err != nil
	if h.kind.slots == 0 {
		h.model.adopt(h.kind.holds)
	}
	for life := 0; life < lives && h.err == nil && !h.creating; life++ {
		if err == nil {
			err = h.live(s)
		}
		switch {
		case h.err != nil || err == nil:
		case !errors.Is(err, pmemtest.ErrPower) && !errors.Is(err, errMedium):
			h.err = err
		case s != nil && s.write(0, 0, []byte("too late")) == nil:
			h.err = errors.New("a write is acknowledged after an error")
		}
		if h.err == nil {
			s, err = h.again()
		}
	}
	h.note()
	if h.err != nil {
		return fmt.Errorf("%s, seed %d: %w", h.kind.name, h.seed, h.err)
	}
	return nil
}

// again opens the log after a crash, or after it was closed.
func (h *history) again() (subject, error) {
	if h.survivor != nil {
		h.note()
		h.attach(pmemtest.After(h.rng.Uint64(), h.survivor, h.kind.sizes...))
		h.survivor = nil
	}
	if h.killed {
		h.trace.Restart()
		h.killed = false
	}
	closed := h.model.closed
	if closed { // from now on it is, or is not any more
		h.model.closed, h.model.closing = false, true
	}
	s, err := h.kind.open(h.kind.traced(h.trace))
	if err != nil {
		return nil, err
	}
	h.model.closed = closed
	got, err := h.judge(s)
	if err != nil {
		return nil, fmt.Errorf("recovery: %w", err)
	}
	h.model.adopt(got)
	if s, ok := s.(*segments); ok {
		h.model.older = s.older()
	}
	return s, h.rest()
}

// attach makes t what the log is written to.
func (h *history) attach(t *pmemtest.Trace) {
	h.trace = t
	t.OnFence = h.crash
	t.Drop = h.drop
}

// note keeps the call sites of the trace.
func (h *history) note() {
	if h.sites == nil {
		return
	}
	redundant := h.trace.Redundant()
	for _, site := range h.trace.Sites() {
		h.sites[site] = h.sites[site] || slices.Contains(redundant, site)
	}
}

// live does what a worker does, until the power fails or the log is closed.
func (h *history) live(s subject) error {
	for range 2 + h.rng.IntN(10) {
		var err error
		closed := false
		switch n := h.rng.IntN(20); {
		case n == 0 || n == 1:
			h.model.clearing = true
			switch err = s.clear(); {
			case err == nil && h.kind.rotates:
				*h.model = *h.model.rotated()
				h.allSynced()
			case err == nil:
				*h.model = *newModel(h.kind)
			}
		case n == 2 || n == 3:
			if err = s.checkpoint(); err == nil {
				h.model.checkpoint = len(h.model.items)
				h.allSynced()
			}
		case n == 4:
			h.model.closing = true
			if err = s.close(); err == nil {
				h.model.closed, h.model.checkpoint, closed = true, len(h.model.items), true
			}
		case n < 10 && h.kind.beside:
			err = h.writeTogether(s)
		case n < 15 && h.kind.group:
			err = h.writeGroup(s.(grouped))
		default:
			err = h.write(s, 0, h.rng.IntN(4))()
		}
		if err != nil {
			return err
		}
		h.model.settle()
		if err := h.rest(); err != nil || closed {
			return err
		}
	}
	h.crashNow()
	return nil
}

// write prepares a write, which it records as begun.
func (h *history) write(s subject, writer, slot int) func() error {
	h.writes++
	// What differs stands in front, so that of two torn ones the rest of the newer may complete the older.
	p := bytes.Repeat([]byte{0xff}, 3+h.rng.IntN(148))
	p[0], p[1], p[2] = byte(h.writes), byte(h.writes>>8), byte(len(p))
	if h.rng.IntN(8) == 0 && h.kind.slots > 0 {
		p = nil
	}
	ended := h.model.begin(slot, p)
	return func() error {
		err := s.write(writer, slot, p)
		ended(err)
		if err == nil {
			h.allSynced()
		}
		if errors.Is(err, ErrFull) {
			return nil
		}
		return err
	}
}

// allSynced notes that a grouped log has made all durable that was stored.
func (h *history) allSynced() {
	if h.kind.group && h.storing == nil {
		h.model.synced(len(h.model.items))
	}
}

// writeGroup stores some items without waiting for them, and may then wait for all, while others store more.
func (h *history) writeGroup(s grouped) error {
	store := func() error {
		h.writes++
		p := bytes.Repeat([]byte{0xff}, 3+h.rng.IntN(148))
		p[0], p[1], p[2] = byte(h.writes), byte(h.writes>>8), byte(len(p))
		ended := h.model.begin(0, p)
		err := s.store(h.rng.IntN(writers), p)
		if err != nil {
			ended(err)
		}
		h.model.settle()
		if errors.Is(err, ErrFull) {
			return nil
		}
		return err
	}
	for range 1 + h.rng.IntN(4) {
		if err := store(); err != nil {
			return err
		}
	}
	if h.rng.IntN(3) == 0 {
		return nil
	}
	began := len(h.model.items)
	h.storing = func() {
		if h.rng.IntN(2) == 0 {
			_ = store() // the sync under way returns the error, too
		}
	}
	err := s.sync()
	h.storing = nil
	if err == nil {
		h.model.synced(began)
	}
	return err
}

// writeTogether lets several writers take turns, call by call.
func (h *history) writeTogether(s subject) error {
	waiting, done := make(chan chan struct{}), make(chan error)
	h.trace.OnStep = func() {
		turn := make(chan struct{})
		waiting <- turn
		<-turn
	}
	var turns []chan struct{}
	var errs []error
	next := func() {
		select {
		case turn := <-waiting:
			turns = append(turns, turn)
		case err := <-done:
			errs = append(errs, err)
		}
	}
	slots := h.rng.Perm(4)
	for writer := range writers {
		write := h.write(s, writer, slots[writer])
		go func() { done <- write() }()
		next()
	}
	for len(turns) > 0 {
		i := h.rng.IntN(len(turns))
		turn := turns[i]
		turns = slices.Delete(turns, i, i+1)
		close(turn)
		next()
	}
	h.trace.OnStep = nil
	return errors.Join(errs...)
}

// rest checks what a crash leaves between two calls, also if one copy of the header is damaged as well.
func (h *history) rest() error {
	h.look(func(image []byte) {})
	if h.rng.IntN(4) == 0 && !h.kind.rotates {
		h.look(func(image []byte) {
			header := 0
			if len(h.kind.sizes) > 1 {
				header = len(image) - SideSize
			}
			image[header+secondCopy*h.rng.IntN(2)+h.rng.IntN(headerSize)] ^= byte(1 + h.rng.IntN(255))
		})
	}
	if h.err == nil && h.rng.IntN(12) == 0 {
		h.crashNow()
	}
	if h.down() {
		return pmemtest.ErrPower
	}
	return h.err
}

// crash checks what a crash leaves before a fence, and may itself be one.
func (h *history) crash() {
	if h.down() || h.err != nil {
		return
	}
	if h.storing != nil {
		h.storing()
	}
	h.look(func([]byte) {})
	if h.err != nil {
		h.trace.Kill()
	} else if h.rng.IntN(12) == 0 {
		h.crashNow()
		if h.rng.IntN(3) == 0 {
			h.trace.Fail(errMedium)
		}
	}
}

// down reports whether the last crash has not been recovered from.
func (h *history) down() bool { return h.survivor != nil || h.killed }

// crashNow cuts the power, or kills the process.
func (h *history) crashNow() {
	if h.rng.IntN(3) > 0 {
		h.cutPower()
		return
	}
	h.killed = true
	h.trace.Kill()
}

func (h *history) cutPower() {
	h.trace.Images(1, h.rng, func(image pmemtest.Image) bool {
		h.survivor = bytes.Clone(image.Bytes)
		return true
	})
	h.trace.Kill()
}

// look recovers images of a crash now, after damage has changed them.
func (h *history) look(damage func(image []byte)) {
	h.trace.Images(h.limit, h.rng, func(image pmemtest.Image) bool {
		h.seen[image.Hash] = struct{}{}
		damage(image.Bytes)
		h.err = h.recover(image.Bytes)
		return h.err == nil
	})
}

// recover opens the log in an image and compares what it holds with the model.
func (h *history) recover(image []byte) error {
	regions := memory(h.trace, image)
	s, err := h.kind.open(regions)
	if h.creating {
		if err == nil {
			_, err = s.items()
			return err
		}
		return nil
	}
	if err != nil {
		return err
	}
	got, err := h.judge(s)
	if err == nil && h.rng.IntN(8) == 0 {
		err = h.goOn(s, regions, got)
	}
	return err
}

// judge compares what a recovered log holds with the model.
func (h *history) judge(s subject) ([][]byte, error) {
	got, err := s.items()
	if err == nil {
		err = h.model.check(got)
	}
	if err == nil {
		err = h.model.checkRecovery(s.recovered(), len(got))
	}
	return got, err
}

// goOn writes to a recovered log and recovers it once more.
func (h *history) goOn(s subject, regions []Region, got [][]byte) error {
	more := model{kind: h.kind}
	more.adopt(got)
	if h.rng.IntN(2) == 0 {
		p := bytes.Repeat([]byte{0xff}, 150)
		ended := more.begin(0, p)
		ended(s.write(0, 0, p))
		more.settle()
	}
	s, err := h.kind.open(regions)
	if err != nil {
		return fmt.Errorf("open again: %w", err)
	}
	if got, err = s.items(); err == nil {
		err = more.check(got)
	}
	if err != nil {
		return fmt.Errorf("opened again: %w", err)
	}
	return nil
}

// TestCrashes recovers 3,000 images, 30,000 without the race detector, or a million if "crash" is demanded.
func TestCrashes(t *testing.T) {
	images := 3000
	if servertest.Whole() {
		images = 30_000
		if servertest.Demanded("crash") {
			images = 1_000_000
		}
	}
	all := append(kinds(), segmentKinds()...)
	for _, k := range all {
		t.Run(k.name, func(t *testing.T) {
			t.Parallel()
			seen, sites := map[uint64]struct{}{}, map[string]bool{}
			for seed := uint64(1); len(seen) < images/len(all)+1; seed++ {
				h := history{kind: k, seed: seed, limit: 64, seen: seen, sites: sites}
				require.NoError(t, h.run())
			}
			for _, site := range slices.Sorted(maps.Keys(sites)) {
				// What a recovery keeps was durable before, unless a process was killed. A site without a name is the test's own.
				require.False(t, sites[site] && site != "" && !strings.Contains(site, " keep <"), "redundant: %s", site)
			}
			t.Logf("%d images, %d call sites", len(seen), len(sites))
		})
	}
}

// TestEachFlushIsNeeded leaves out flushes and fences, one call site at a time, until a crash shows the loss: at a quarter of the sites under the race
// detector.
func TestEachFlushIsNeeded(t *testing.T) {
	reached := map[string][]kind{}
	for _, k := range append(kinds(), segmentKinds()...) {
		sites := map[string]bool{}
		for seed := range uint64(20) {
			h := history{kind: k, seed: seed, limit: 1, seen: map[uint64]struct{}{}, sites: sites}
			require.NoError(t, h.run())
		}
		for site := range sites {
			reached[site] = append(reached[site], k)
		}
	}
	source, err := os.ReadFile("segments.go")
	require.NoError(t, err)
	before, _, found := bytes.Cut(source, []byte("OpenAppend(previous)"))
	require.True(t, found)
	previous := fmt.Sprintf("segments.go:%d ", 1+bytes.Count(before, []byte("\n")))
	for i, site := range slices.Sorted(maps.Keys(reached)) {
		if strings.Contains(site, " keep <") && strings.Contains(site, previous) {
			continue // what a previous segment holds was durable before it became one
		}
		if i%4 > 0 && !servertest.Whole() {
			continue
		}
		t.Run(site, func(t *testing.T) {
			t.Parallel()
			for seed := range uint64(2000) {
				k := reached[site][seed%uint64(len(reached[site]))]
				h := history{kind: k, seed: seed, limit: 32, seen: map[uint64]struct{}{}, drop: func(s string) bool { return s == site }}
				if err := h.run(); err != nil {
					t.Log(err)
					return
				}
			}
			t.Error("no crash shows that it is not there")
		})
	}
}

// TestAMediumThatDoesNotFlushIsCaught checks that the tests above can fail.
func TestAMediumThatDoesNotFlushIsCaught(t *testing.T) {
	for _, k := range append(kinds(), segmentKinds()...) {
		h := history{kind: k, seed: 1, limit: 32, seen: map[uint64]struct{}{}, drop: func(string) bool { return true }}
		err := h.run()
		require.Error(t, err, k.name)
		t.Log(err)
	}
}
