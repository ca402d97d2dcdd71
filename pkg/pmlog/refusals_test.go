package pmlog

import (
	"bytes"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/loadgen/loadgen/pkg/pmem"
	"github.com/loadgen/loadgen/pkg/pmem/pmemtest"
)

var errRefused = errors.New("refused")

// refusals count the calls of regions and their mediums, of which number at fails, from 1.
type refusals struct {
	calls, at int
	failed    string // the call that did
}

func (r *refusals) call(name string) error {
	if r.calls++; r.calls != r.at {
		return nil
	}
	r.failed = name
	return errRefused
}

// refusing is a region whose calls may fail.
type refusing struct {
	Region
	r *refusals
}

func (f refusing) ReadAt(p []byte, off int64) (int, error) {
	if len(p) > 0 { // none is asked for of nothing
		if err := f.r.call("ReadAt"); err != nil {
			return 0, err
		}
	}
	return f.Region.ReadAt(p, off)
}

func (f refusing) Check() error { return errors.Join(f.r.call("Check"), f.Region.Check()) }

func (f refusing) Close() error { return errors.Join(f.r.call("Close"), f.Region.Close()) }

func (f refusing) Writer() pmem.Medium { return refusingMedium{f.Region.Writer(), f.r} }

type refusingMedium struct {
	pmem.Medium
	r *refusals
}

func (m refusingMedium) Put(off int64, head, p []byte) error {
	if err := m.r.call("Put"); err != nil {
		return err
	}
	return m.Medium.Put(off, head, p)
}

func (m refusingMedium) Seal(off int64, head, p []byte, room int64) (uint32, error) {
	if err := m.r.call("Seal"); err != nil {
		return 0, err
	}
	return m.Medium.Seal(off, head, p, room)
}

func (m refusingMedium) Store8(off int64, v uint64) error {
	if err := m.r.call("Store8"); err != nil {
		return err
	}
	return m.Medium.Store8(off, v)
}

func (m refusingMedium) Flush(off, n int64) error {
	if err := m.r.call("Flush"); err != nil {
		return err
	}
	return m.Medium.Flush(off, n)
}

func (m refusingMedium) Fence() error {
	if err := m.r.call("Fence"); err != nil {
		return err
	}
	return m.Medium.Fence()
}

// over returns failing regions in memory, of a kind's sizes or with copies of bytes.
func over(k kind, r *refusals, images [][]byte) (regions []Region, bare []*pmemtest.Memory) {
	for i, size := range k.sizes {
		m := &pmemtest.Memory{Bytes: make([]byte, size)}
		if images != nil {
			copy(m.Bytes, images[i])
		}
		bare = append(bare, m)
		regions = append(regions, refusing{m, r})
	}
	return regions, bare
}

// life puts a log through its life. Each step returns the first error.
func life(k kind, regions []Region) error {
	s, err := k.create(regions)
	if err != nil {
		return err
	}
	for n := range 4 {
		if err := s.write(n%writers, n%4, bytes.Repeat([]byte{byte(n + 1)}, 20+90*(n%2))); err != nil {
			return err
		}
	}
	if _, err := s.items(); err != nil {
		return err
	}
	if err := s.checkpoint(); err != nil {
		return err
	}
	if err := s.write(0, 0, []byte("behind the checkpoint")); err != nil {
		return err
	}
	if err := s.clear(); err != nil {
		return err
	}
	if err := s.write(0, 1, []byte("after a clear")); err != nil {
		return err
	}
	return s.close()
}

// If any call of the file fails in the life of a log of any layout, the step that made it returns the error.
func TestEachRefusalInALogsLifeIsTold(t *testing.T) {
	for _, k := range kinds() {
		at := 1
		for ; ; at++ {
			r := &refusals{at: at}
			regions, _ := over(k, r, nil)
			err := life(k, regions)
			if r.failed == "" {
				require.NoError(t, err, k.name)
				break
			}
			require.ErrorIs(t, err, errRefused, "%s: call %d, %s", k.name, at, r.failed)
		}
		require.Greater(t, at, 15, "%s: calls", k.name)
	}
}

// ended returns the files of logs as a crash or a close left them: with torn records, with holes, with both entries of a channel in use.
func ended(t *testing.T, k kind) (all [][][]byte) {
	keep := func(bare []*pmemtest.Memory, last int) {
		var images [][]byte
		for i, m := range bare {
			p := bytes.Clone(m.Bytes)
			if last > 0 && i == 0 { // the last byte of what was written then is not there
				at := bytes.LastIndex(p, bytes.Repeat([]byte{byte(last)}, 90))
				require.Positive(t, at)
				p[at+89] ^= 0xff
			}
			images = append(images, p)
		}
		all = append(all, images)
	}
	regions, bare := over(k, &refusals{}, nil)
	s, err := k.create(regions)
	require.NoError(t, err)
	keep(bare, 0)
	for n := range 5 {
		require.NoError(t, s.write(n%writers, n%2, bytes.Repeat([]byte{byte(n + 1)}, 90)))
	}
	keep(bare, 0)
	keep(bare, 5)
	keep(bare, 4)
	require.NoError(t, s.close())
	keep(bare, 0)
	return all
}

// If any call of the file fails while a log is opened or read, that error is returned.
func TestEachRefusalOfARecoveryIsTold(t *testing.T) {
	for _, k := range kinds() {
		for i, images := range ended(t, k) {
			at := 1
			for ; ; at++ {
				r := &refusals{at: at}
				regions, _ := over(k, r, images)
				s, err := k.open(regions)
				if err == nil {
					_, err = s.items()
				}
				if r.failed == "" {
					require.True(t, err == nil || errors.Is(err, ErrCorrupt), "%s, image %d: %v", k.name, i, err)
					break
				}
				require.ErrorIs(t, err, errRefused, "%s, image %d: call %d, %s", k.name, i, at, r.failed)
			}
			require.Greater(t, at, 2, "%s, image %d: calls", k.name, i)
		}
	}
}

// Opening a log as another layout reports its actual layout.
func TestALogIsOfItsLayout(t *testing.T) {
	m := &pmemtest.Memory{Bytes: make([]byte, dataStart+2000)}
	_, err := CreateAppend(m, AppendOptions{})
	require.NoError(t, err)
	_, err = OpenArray(m)
	require.ErrorContains(t, err, "open an array log: the log has layout append, not array")
	_, err = OpenChannel(m, m)
	require.ErrorContains(t, err, "the log has layout append, not channel")
	require.Equal(t, "number 7", layout(7).String())
}
