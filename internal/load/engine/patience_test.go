package engine

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/loadgen/loadgen/internal/base/safefile"
	"github.com/loadgen/loadgen/internal/load/worker"
	"github.com/loadgen/loadgen/internal/servertest"
	"github.com/loadgen/loadgen/pkg/plan"
)

// stuck is a file whose server has gone: from some byte on, a read of it does not return.
type stuck struct {
	*bytes.Reader
	size, halt int64
	asked      chan struct{} // holds one: a read that does not end has begun
	free       chan struct{} // closed: they end
	closed     chan struct{}
}

func (s *stuck) Stat() (fs.FileInfo, error) { return sized(s.size), nil }

func (s *stuck) Read(p []byte) (int, error) {
	if at := s.Size() - int64(s.Len()); at >= s.halt {
		select {
		case s.asked <- struct{}{}:
		default:
		}
		<-s.free
		return 0, errors.New("stale file handle")
	}
	return s.Reader.Read(p[:min(int64(len(p)), s.halt)])
}

func (s *stuck) Close() error { close(s.closed); return nil }

// sized is the file info of a file of a size.
type sized int64

func (s sized) Name() string     { return "stuck" }
func (s sized) Size() int64      { return int64(s) }
func (sized) Mode() fs.FileMode  { return 0 }
func (sized) ModTime() time.Time { return time.Time{} }
func (sized) IsDir() bool        { return false }
func (sized) Sys() any           { return nil }

// Once cancelled, preparing a step does not wait for a file system that never answers: neither to open a file nor to read one, of any kind.
func TestPreparingEndsThoughAFileDoesNotAnswer(t *testing.T) {
	errCalledOff := errors.New("called off")
	text := []byte("a\nb\nc\n")
	for name, prepare := range map[string]func(ctx context.Context, e *Engine) error{
		"keys": func(ctx context.Context, e *Engine) error {
			_, err := e.keysOf(ctx, plan.Keys{Count: 3, File: &plan.EntryFile{Path: "f", Form: "lines", Length: 6}})
			return err
		},
		"values": func(ctx context.Context, e *Engine) error {
			_, err := e.valuesOf(ctx, plan.Values{File: &plan.ValueFile{EntryFile: plan.EntryFile{Path: "f", Form: "lines", Length: 6}, Encoding: "text", Count: 3}})
			return err
		},
		"trace": func(ctx context.Context, e *Engine) error {
			_, err := e.openTrace(ctx, &plan.Trace{File: "f", Form: "csv", Length: 6})
			return err
		},
		"certificates": func(ctx context.Context, e *Engine) error {
			_, err := e.readFile(ctx, "f")
			return err
		},
	} {
		for _, halt := range []int64{-1, 0, 4} { // −1: it cannot be opened
			t.Run(name, func(t *testing.T) {
				file := &stuck{Reader: bytes.NewReader(text), size: 6, halt: halt, asked: make(chan struct{}, 1), free: make(chan struct{}), closed: make(chan struct{})}
				e := New(Config{Open: func(string) (File, error) {
					if halt < 0 {
						file.asked <- struct{}{}
						<-file.free
					}
					return file, nil
				}})
				ctx, cancel := context.WithCancelCause(t.Context())
				ended := make(chan error, 1)
				go func() { ended <- prepare(ctx, e) }()
				<-file.asked
				cancel(errCalledOff)
				select {
				case err := <-ended:
					require.ErrorIs(t, err, errCalledOff)
				case <-time.After(10 * time.Second):
					require.FailNow(t, "it waits for the file")
				}
				close(file.free)
				<-file.closed // by whoever has opened it, though nobody waits any more
			})
		}
	}
}

// A file is read to its end, from any place, until its context ends; then nothing more of it is read, not even what is there.
func TestPatientReads(t *testing.T) {
	text := strings.Repeat("0123456789", readAtOnce/4)
	errEnough := errors.New("enough")
	ctx, cancel := context.WithCancelCause(t.Context())
	file := newPatient(ctx, inMemory{strings.NewReader(text)})
	all, err := io.ReadAll(file)
	require.NoError(t, err)
	require.Equal(t, text, string(all))
	n, err := file.Read(make([]byte, 10))
	require.Zero(t, n)
	require.ErrorIs(t, err, io.EOF)
	_, err = file.Seek(5, io.SeekStart)
	require.NoError(t, err)
	some := make([]byte, 3)
	n, err = file.Read(some)
	require.NoError(t, err)
	require.Equal(t, "567", string(some[:n]))
	cancel(errEnough)
	n, err = file.Read(some)
	require.Zero(t, n)
	require.ErrorIs(t, err, errEnough)
}

// inMemory is a file without a descriptor.
type inMemory struct{ io.ReadSeeker }

func (inMemory) Close() error { return nil }

// damaged is a file of which only the first read succeeds.
type damaged struct {
	inMemory
	reads int
}

var errDamaged = errors.New("input/output error")

func (d *damaged) Read(p []byte) (int, error) {
	if d.reads++; d.reads > 1 {
		return 0, errDamaged
	}
	return d.inMemory.Read(p)
}

// A file that fails is not read again, and everything before that is there, however little is taken at a time.
func TestPatientReadsEndWithAnError(t *testing.T) {
	from := &damaged{inMemory: inMemory{strings.NewReader("0123456789")}}
	file := newPatient(t.Context(), from)
	text, err := io.ReadAll(iotest.OneByteReader(file))
	require.ErrorIs(t, err, errDamaged)
	require.Equal(t, "0123456789", string(text))
	_, err = file.Read(make([]byte, 10))
	require.ErrorIs(t, err, errDamaged)
	require.Equal(t, 2, from.reads)
}

// What a call returns after its caller has gone on is given to late if there is one and if it is no error. No goroutine is left.
func TestWhatComesTooLate(t *testing.T) {
	errCalledOff := errors.New("called off")
	for name, tt := range map[string]struct {
		err    error
		wanted bool
		want   []string
	}{
		"a value":             {nil, true, []string{"it"}},
		"an error":            {errDamaged, true, nil},
		"a value, for nobody": {nil, false, nil},
	} {
		servertest.Bubble(t, func(t *testing.T) {
			ctx, cancel := context.WithCancelCause(t.Context())
			time.AfterFunc(time.Second, func() { cancel(errCalledOff) })
			var got []string
			late := func(value string) { got = append(got, value) }
			if !tt.wanted {
				late = nil
			}
			value, err := awaited(ctx, func() (string, error) {
				time.Sleep(time.Minute)
				return "it", tt.err
			}, late)
			require.ErrorIs(t, err, errCalledOff, name)
			require.Empty(t, value, name)
			time.Sleep(time.Hour)
			synctest.Wait()
			require.Equal(t, tt.want, got, name)
		})
	}
}

// A replay whose trace stops answering in its midst ends when the step does.
func TestReplayEndsThoughItsTraceDoesNotAnswer(t *testing.T) {
	_, text := recorded(5000)
	b := newReplayBench(t, "sessions = 4\n pipeline = 64", text, 5000, 100*time.Microsecond)
	file := &stuck{
		Reader: bytes.NewReader([]byte(text)), size: int64(len(text)), halt: 10_000,
		asked: make(chan struct{}, 1), free: make(chan struct{}), closed: make(chan struct{}),
	}
	defer close(file.free)
	b.g.trace = func(ctx context.Context) (io.ReadSeekCloser, error) { return newPatient(ctx, file), nil }
	b.equip(worker.Load)
	go func() {
		<-file.asked
		b.l.halt.Store(abandon)
	}()
	b.l.run()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = b.l.feed.(reading).close() // it has ended early, as it should
	}()
	select {
	case <-ended:
	case <-time.After(10 * time.Second):
		require.FailNow(t, "it waits for the trace")
	}
}

// No more of a file is read than the plan announces, and a file that grows or shrinks between the check and its use is not used.
func TestFilesKeepTheLengthThatThePlanSays(t *testing.T) {
	const text = "0,key,3,10,1,get,0\n1,key,3,10,1,get,0\n"
	sum := sha256.Sum256([]byte(text))
	announced := plan.Trace{File: "t.csv", Form: "cache", SHA256: hex.EncodeToString(sum[:]), Length: int64(len(text)), Lines: 2}
	refusal := `trace "t.csv" is not the file that the plan was checked with: copy that to where the load runs`
	dir := t.TempDir()
	path := filepath.Join(dir, "t.csv")
	write := func(text string) { require.NoError(t, os.WriteFile(path, []byte(text), 0o600)) }
	e := New(Config{Open: in(dir)})

	for _, other := range []string{"", text[:len(text)-1], text + "2", text + text} {
		write(other)
		_, err := e.openTrace(t.Context(), &announced)
		require.EqualError(t, err, refusal)
		require.Zero(t, e.Progress(), "nothing was read")
	}
	write(text)
	silent := announced
	silent.Length = 0
	_, err := e.openTrace(t.Context(), &silent)
	require.EqualError(t, err, refusal, "a plan that does not say how long it is")

	open, err := e.openTrace(t.Context(), &announced)
	require.NoError(t, err)
	again, err := open(t.Context())
	require.NoError(t, err)
	for range 2 {
		b, err := io.ReadAll(again)
		require.NoError(t, err)
		require.Equal(t, text, string(b))
		_, err = again.Seek(0, io.SeekStart)
		require.NoError(t, err)
	}
	for _, size := range []int64{int64(len(text)) - 1, int64(len(text)) + 1} { // while it is open, as in a replay
		require.NoError(t, os.Truncate(path, size))
		_, err = again.Seek(0, io.SeekStart)
		require.NoError(t, err)
		_, err = io.ReadAll(again)
		require.ErrorIs(t, err, safefile.ErrLength)
		_, err = open(t.Context())
		require.EqualError(t, err, refusal)
	}
	require.NoError(t, again.Close())
	write(text[:len(text)-1] + "x")
	require.NoError(t, os.Chtimes(path, time.Time{}, time.Now().Add(time.Hour)))
	_, err = open(t.Context())
	require.EqualError(t, err, refusal, "it has the length, and was written since")
}
