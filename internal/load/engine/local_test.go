package engine

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/loadgen/loadgen/internal/count/measure"
	"github.com/loadgen/loadgen/internal/load/policy"
	"github.com/loadgen/loadgen/internal/load/worker"
	"github.com/loadgen/loadgen/internal/plan/op"
	"github.com/loadgen/loadgen/internal/servertest"
	"github.com/loadgen/loadgen/internal/target/drivers"
	logdriver "github.com/loadgen/loadgen/internal/target/drivers/log"
	"github.com/loadgen/loadgen/internal/target/drivers/null"
	"github.com/loadgen/loadgen/pkg/driver"
	"github.com/loadgen/loadgen/pkg/driver/localfile"
	"github.com/loadgen/loadgen/pkg/plan"
)

// logPlan is a plan with phases on a log target.
func logPlan(t testing.TB, target, phases string) *plan.Plan {
	return parsePlan(t, `
		target "wal" {
			driver    = "log"
			sync      = "none"
			file_size = "1MiB"
			`+target+`
		}
		dataset "d" {
			keys { count = 8 }
			values { size = 100 }
		}
		`+phases)
}

// logPhase is a phase on it.
func logPhase(name, load string) string {
	return "phase \"" + name + "\" {\n target = target.wal\n dataset = dataset.d\n" + load + "\n}\n"
}

// localEngine has a plan assigned, and keeps log files below the directory that it returns.
func localEngine(t testing.TB, p *plan.Plan) (e *Engine, root string) {
	t.Helper()
	root = t.TempDir()
	e = assigned(t, Config{
		Loops:   servertest.Loops(),
		LogRoot: func() (string, error) { return root, nil },
		Verify: func(_ context.Context, name string, claim []byte) (localfile.Proof, error) {
			for _, d := range drivers.All() {
				if local, ok := d.(localfile.Driver); ok && d.Name() == name {
					return local.Verify(claim)
				}
			}
			return localfile.Proof{}, errors.New("no such driver")
		},
	}, p)
	return e, root
}

// carryOut prepares and runs the load of a phase. When something has been written, meanwhile is called.
func carryOut(t testing.TB, e *Engine, phase string, meanwhile func()) worker.Final {
	t.Helper()
	step := stepOf(e.plan.Phase(phase), worker.Load)
	ready := prepared(t, e, step)
	require.Equal(t, plan.Thread, ready.Executor)
	loops := step.To
	if s := e.plan.Phase(phase).Schedule(); s != nil {
		loops = min(loops, s.InFlight)
	}
	require.Equal(t, loops, ready.Loops)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var aside sync.WaitGroup
	if meanwhile != nil {
		before := logFiles(e)
		aside.Go(func() {
			for ctx.Err() == nil && slices.EqualFunc(before, logFiles(e), bytes.Equal) {
				time.Sleep(10 * time.Millisecond)
			}
			meanwhile()
		})
	}
	final, err := e.Run(t.Context(), e.now(), takeAll)
	cancel()
	aside.Wait()
	require.NoError(t, err)
	require.NoError(t, final.Totals.CheckValid())
	return final
}

// A worker that no session of a log falls to writes none.
func TestIdleWorkerWritesNoLog(t *testing.T) {
	e, root := localEngine(t, logPlan(t, "", logPhase("load", "ops = { append = 1 }\nclosed {\n sessions = 1\n iterations = 5\n}")))
	ready := prepared(t, e, worker.Step{Phase: "load", Kind: worker.Load, Last: true, From: 1, To: 1})
	require.Zero(t, ready.Sessions)
	names, err := os.ReadDir(root)
	require.NoError(t, err)
	require.Empty(t, names)
}

// logFiles returns the contents of an engine's log files, by name.
func logFiles(e *Engine) (contents [][]byte) {
	root, _ := e.cfg.LogRoot()
	paths, _ := filepath.Glob(filepath.Join(root, "*"))
	for _, path := range paths {
		content, _ := os.ReadFile(path) // none where it is gone: that is a change as well
		contents = append(contents, content)
	}
	return contents
}

func (e *Engine) now() time.Duration { return time.Duration(e.clock.now()) }

// TestLogsAreLoadedAndVerified carries out two phases on the same files, which are gone after the second.
func TestLogsAreLoadedAndVerified(t *testing.T) {
	for _, layout := range []string{"append", "channel", "array", "raw"} {
		t.Run(layout, func(t *testing.T) {
			e, root := localEngine(t, logPlan(t, "layout = \""+layout+"\"",
				logPhase("write", "ops = { append = 1 }\n closed {\n sessions = 3\n iterations = 1000\n}")+
					logPhase("mixed", "ops = { append = 3, read = 1 }\n open {\n sessions = 2\n rate = 5000\n duration = \"200ms\"\n}")))
			final := carryOut(t, e, "write", nil)
			o := final.Totals.Ops[driver.Append]
			require.EqualValues(t, 3000, o.Outcomes[driver.OK])
			require.EqualValues(t, 300_000, o.Out)
			require.EqualValues(t, 3000, final.Totals.Request(0, driver.Append).Answered)
			require.EqualValues(t, 300_000, final.Log.Bytes)
			require.Positive(t, final.Log.Proof.Verified)
			require.Equal(t, final.Log.Proof.Acknowledged, final.Log.Proof.Verified)
			require.Empty(t, final.Log.Proof.Wrong)
			require.Positive(t, final.Generator.Busy)
			require.Len(t, final.Log.Threads, 3)
			for i, thread := range final.Log.Threads {
				require.Equal(t, []int{i, 1}, []int{thread.Session, thread.Sessions})
				require.False(t, thread.Pinned)
				require.True(t, min(thread.CPU, thread.CPUAtEnd) >= 0 && max(thread.CPU, thread.CPUAtEnd) < 8192, thread)
			}
			left, err := os.ReadDir(root)
			require.NoError(t, err)
			require.NotEmpty(t, left, "the next phase has the same target")

			final = carryOut(t, e, "mixed", nil)
			require.EqualValues(t, 1000, final.Totals.Ops[driver.Append].Due+final.Totals.Ops[driver.Read].Due)
			require.Empty(t, final.Log.Proof.Wrong)
			left, err = os.ReadDir(root)
			require.NoError(t, err)
			require.Empty(t, left)
		})
	}
}

// TestLogThatFails truncates a log during the load. Once each of its sessions has found out, the load ends, however much of it was left.
func TestLogThatFails(t *testing.T) {
	for _, load := range []string{
		"closed { duration = \"1h\" }",
		"closed {\n sessions = 2\n pipeline = 3\n iterations = 1000000000000\n}",
		"closed {\n sessions = 2\n think = \"1ms\"\n iterations = 1000000000000\n}",
		"open {\n sessions = 2\n rate = 20000\n duration = \"1h\"\n}",
		"open {\n sessions = 3\n in_flight = 2\n rate = 20000\n duration = \"1h\"\n on_full = \"shed\"\n}",
	} {
		t.Run(load, func(t *testing.T) {
			e, root := localEngine(t, logPlan(t, "", logPhase("write", "ops = { append = 1 }\n"+load)))
			final := carryOut(t, e, "write", func() { _ = os.Truncate(filepath.Join(root, "wal-w0.pmlog"), 0) })
			o := final.Totals.Ops[driver.Append]
			require.Positive(t, o.Outcomes[driver.OK])
			require.Positive(t, o.Causes[op.Lost])
			require.Equal(t, o.Due, o.Outcomes[driver.OK]+o.Outcomes[driver.Error]+o.Outcomes[driver.Shed])
			require.False(t, final.Stopped, "nobody has asked for it")
			require.Contains(t, final.Log.Failure, "the file was truncated")
			require.GreaterOrEqual(t, final.Log.Proof.Acknowledged, uint64(1))
			require.Zero(t, final.Log.Proof.Verified, "there is nothing left to read")
		})
	}
}

// TestOneLogOfSeveralFails fails the log of one session: the others go on, and the failed session begins no further op.
func TestOneLogOfSeveralFails(t *testing.T) {
	t.Parallel()
	const rate = 10_000
	for load, due := range map[string]uint64{
		"closed {\n sessions = 3\n think = \"1ms\"\n duration = \"1s\"\n}":                            0,
		fmt.Sprintf("open {\n sessions = 3\n rate = %d\n duration = \"1s\"\n}", rate):                 rate,
		fmt.Sprintf("open {\n sessions = 3\n in_flight = 2\n rate = %d\n duration = \"1s\"\n}", rate): rate,
	} {
		t.Run(load, func(t *testing.T) {
			e, root := localEngine(t, logPlan(t, "share = \"session\"", logPhase("write", "ops = { append = 1 }\n"+load)))
			final := carryOut(t, e, "write", func() { _ = os.Truncate(filepath.Join(root, "wal-w0-s1.pmlog"), 0) })
			o := final.Totals.Ops[driver.Append]
			require.EqualValues(t, 1, o.Causes[op.Lost])
			require.Contains(t, final.Log.Failure, "wal-w0-s1.pmlog")
			require.Greater(t, final.Totals.Span.Last-final.Totals.Origin, int64(900*time.Millisecond))
			if due == 0 {
				require.EqualValues(t, 1, o.Outcomes[driver.Error])
				return
			}
			require.Equal(t, due, o.Due, "ops of an open load are due whatever became of those before them")
			require.Positive(t, o.Causes[op.Refused])
		})
	}
}

// TestStoppedWorkerVerifiesNothing reports this in its own words, not in those of the process that it did not wait for.
func TestStoppedWorkerVerifiesNothing(t *testing.T) {
	e, _ := localEngine(t, logPlan(t, "", logPhase("write", "ops = { append = 1 }\n closed {\n duration = \"1h\"\n}")))
	prepared(t, e, stepOf(e.plan.Phase("write"), worker.Load))
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(50*time.Millisecond, cancel)
	final, _ := e.Run(ctx, e.now(), takeAll)
	require.NotNil(t, final.Log)
	require.Nil(t, final.Log.Proof)
	require.Equal(t, "the worker was stopped", final.Log.Unproven)
}

// TestLogOpsBeyondTheTimeout are done, and counted as timeouts.
func TestLogOpsBeyondTheTimeout(t *testing.T) {
	e, _ := localEngine(t, logPlan(t, "timeout = \"1ns\"", logPhase("write", "ops = { append = 1 }\n closed { iterations = 100 }")))
	final := carryOut(t, e, "write", nil)
	require.EqualValues(t, 100, final.Totals.Ops[driver.Append].Outcomes[driver.Timeout])
	require.EqualValues(t, 100, final.Log.Proof.Verified)
}

// TestWaitsForSyncsAreTimedApart from the rest of what an op takes. A delay before each sync is known to be in them.
func TestWaitsForSyncsAreTimedApart(t *testing.T) {
	e, _ := localEngine(t, parsePlan(t, `
		target "wal" {
			driver    = "log"
			sync      = "fdatasync"
			file_size = "1MiB"
			group_commit { max_delay = "5ms" }
		}
		dataset "d" {
			keys { count = 8 }
			values { size = 100 }
		}
		`+logPhase("write", "ops = { append = 1 }\n closed { iterations = 20 }")))
	final := carryOut(t, e, "write", nil)
	o := final.Totals.Ops[driver.Append]
	require.Empty(t, final.Log.Untimed)
	require.EqualValues(t, 20, o.Split.Sync.Count())
	require.GreaterOrEqual(t, o.Split.Sync.Min(), int64(5*time.Millisecond))
	require.Equal(t, o.Service[measure.ClassOK].Sum(), o.Split.Write.Sum()+o.Split.Sync.Sum())

	e, _ = localEngine(t, logPlan(t, "", logPhase("write", "ops = { append = 1 }\n closed { iterations = 20 }")))
	final = carryOut(t, e, "write", nil)
	require.NotEmpty(t, final.Log.Untimed)
	require.Nil(t, final.Totals.Ops[driver.Append].Split)
}

// TestDrainedAndAbandonedLogs end soon, and their contents are verified unless there is no time for it.
func TestDrainedAndAbandonedLogs(t *testing.T) {
	p := logPlan(t, "", logPhase("write", "ops = { append = 1 }\n closed { duration = \"1h\" }"))
	e, _ := localEngine(t, p)
	final := carryOut(t, e, "write", e.Drain)
	require.True(t, final.Stopped)
	require.Empty(t, final.Log.Proof.Wrong)

	e, _ = localEngine(t, p)
	loaded(t, e)
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	final, err := e.Run(ctx, e.now(), takeAll)
	require.NoError(t, err)
	require.NoError(t, final.Totals.CheckValid())
}

// TestLapsedLogs write nothing after the lease.
func TestLapsedLogs(t *testing.T) {
	e, _ := localEngine(t, logPlan(t, "", logPhase("write", "ops = { append = 1 }\n closed { duration = \"1h\" }")))
	e.SetLease(e.now() + 300*time.Millisecond)
	final := carryOut(t, e, "write", nil)
	require.True(t, final.Expired)
	require.Empty(t, final.Log.Proof.Wrong)
}

// TestLogsThatCannotBeOpened end the preparation with the reason.
func TestLogsThatCannotBeOpened(t *testing.T) {
	for want, change := range map[string]func(e *Engine){
		"this worker has no directory for log files": func(e *Engine) { e.cfg.LogRoot = nil },
		"the disk is gone": func(e *Engine) {
			e.cfg.LogRoot = func() (string, error) { return "", errors.New("the disk is gone") }
		},
		"no such file or directory": func(e *Engine) {
			e.cfg.LogRoot = func() (string, error) { return "/nowhere", nil }
		},
		"log_bytes: ":               func(e *Engine) { e.cfg.Policy = &policy.Policy{LogBytes: 1 << 10} },
		`neither "text" nor a byte`: func(e *Engine) { e.plan.Dataset("d").Values.Fill = "grey" },
	} {
		p := logPlan(t, "", logPhase("write", "ops = { append = 1 }\n closed { iterations = 1 }"))
		e, _ := localEngine(t, p)
		change(e)
		_, err := e.Prepare(t.Context(), stepOf(p.Phases[0], worker.Load))
		require.ErrorContains(t, err, `target "wal": `)
		require.ErrorContains(t, err, want)
		require.Empty(t, e.locals)
	}
}

// TestLogThatFailedIsNotUsedAgain: the kernel may return data that never reached the disk.
func TestLogThatFailedIsNotUsedAgain(t *testing.T) {
	e, root := localEngine(t, logPlan(t, "", logPhase("write", "ops = { append = 1 }\n closed { duration = \"1h\" }")+
		logPhase("again", "ops = { append = 1 }\n closed { iterations = 1 }")))
	final := carryOut(t, e, "write", func() { _ = os.Truncate(filepath.Join(root, "wal-w0.pmlog"), 0) })
	require.NotEmpty(t, final.Log.Failure)
	_, err := e.Prepare(t.Context(), stepOf(e.plan.Phase("again"), worker.Load))
	require.EqualError(t, err, `target "wal": its files must not be used any more: they failed in phase "write"`)
	e.Close()
	left, err := os.ReadDir(root)
	require.NoError(t, err)
	require.Empty(t, left)
}

// TestLogsThatCannotBeVerified say why not.
func TestLogsThatCannotBeVerified(t *testing.T) {
	for want, verify := range map[string]func(context.Context, string, []byte) (localfile.Proof, error){
		"this worker starts no process to verify with": nil,
		"no memory": func(context.Context, string, []byte) (localfile.Proof, error) {
			return localfile.Proof{}, errors.New("no memory")
		},
	} {
		e, root := localEngine(t, logPlan(t, "", logPhase("write", "ops = { append = 1 }\n closed { iterations = 10 }")))
		e.cfg.Verify = verify
		final := carryOut(t, e, "write", nil)
		require.Nil(t, final.Log.Proof)
		require.Equal(t, want, final.Log.Unproven)
		left, err := os.ReadDir(root)
		require.NoError(t, err)
		require.Empty(t, left)
	}
}

// Files that are gone take nothing of what a worker may write.
func TestRemovedFilesTakeNoRoom(t *testing.T) {
	of := &localTarget{bytes: 1 << 20, left: []localfile.Store{paperStore{}}}
	of.remove(slog.New(slog.DiscardHandler))
	require.Zero(t, of.bytes)
	require.Empty(t, of.left)
}

// TestFilesThatWorkersWouldShare are refused: each worker has files of its own.
func TestFilesThatWorkersWouldShare(t *testing.T) {
	for scope, want := range map[string]string{
		"":                    `target "wal": each of 2 workers has files of its own, and all share the keys of dataset "d": write keys { scope = "session" } there, or use one worker`,
		"scope = \"session\"": "",
	} {
		for workers := 1; workers <= 2; workers++ {
			p := parsePlan(t, `
				target "wal" {
					driver = "files"
					sync   = "none"
				}
				dataset "d" {
					keys {
						count = 8
						`+scope+`
					}
					values { size = 100 }
				}
				`+logPhase("load", "ops = { put = 1 }\n closed {\n sessions = 2\n iterations = 4\n}"))
			e, _ := localEngine(t, p)
			e.run.Workers = workers
			_, err := e.Prepare(t.Context(), stepOf(p.Phases[0], worker.Load))
			if want == "" || workers == 1 {
				require.NoError(t, err)
			} else {
				require.EqualError(t, err, want)
			}
		}
	}
}

// Workers may share the keys of logs, whose entries say who wrote them.
func TestLogsOfSeveralWorkers(t *testing.T) {
	p := logPlan(t, "", logPhase("load", "ops = { append = 1 }\n closed { iterations = 1 }"))
	e, _ := localEngine(t, p)
	e.run.Workers = 2
	loaded(t, e)
}

// paper is a driver of files that are not there. It notes where they were to be, and what became of them.
type paper struct {
	moodyFiles
	sites           []localfile.Site
	closed, removed int
	need, open, end error
	blown           bool // opening panics
	looks           uint64
	blind           error
}

func (d *paper) Need(any, localfile.Site) (localfile.Need, error) {
	return localfile.Need{Bytes: 100}, d.need
}

func (d *paper) Open(_ context.Context, _ any, site localfile.Site) (localfile.Store, error) {
	if d.blown {
		panic("blown")
	}
	site.Wrote(7)
	site.Had = maps.Clone(site.Had)
	d.sites = append(d.sites, site)
	return paperFiles{d: d}, d.open
}

type paperFiles struct {
	paperStore
	d *paper
}

// Device implements localfile.Placed: each look at it finds 100 bytes more.
func (s paperFiles) Device() localfile.Device {
	return localfile.Device{Name: "/dev/paper", Number: "8:1", NoFlushes: "it has no cache", Counts: func() (uint64, uint64, error) {
		s.d.looks++
		return 100 * s.d.looks, 0, s.d.blind
	}}
}

func (paperFiles) Session(int) (localfile.Session, error) {
	return carries(func(*driver.Reply) {}), nil
}

func (s paperFiles) Close() ([]byte, error) { s.d.closed++; return nil, s.d.end }
func (s paperFiles) Remove() error          { s.d.removed++; return nil }

// onPaper has a plan assigned whose phases put once in each session.
func onPaper(t *testing.T, d *paper, phases string) *Engine {
	t.Helper()
	all := []driver.Driver{d, null.Driver{}}
	return assigned(t, Config{Loops: 1, Drivers: all, LogRoot: func() (string, error) { return "/logs", nil }}, parsePlanFor(t, all, `
		target "t" { driver = "paper" }
		target "u" {
			driver    = "null"
			endpoints = ["e0:1"]
			executor  = "blocking"
		}
		dataset "shared" {
			keys { count = 20 }
			values { size = 100 }
		}
		dataset "own" {
			keys {
				count = 8
				scope = "session"
			}
			values { size = 50 }
		}
		`+phases))
}

// paperPhase is a phase of a plan for onPaper.
func paperPhase(name, target, dataset string, sessions int) string {
	return fmt.Sprintf(`
		phase %q {
			target  = target.%s
			dataset = dataset.%s
			ops     = { put = 1 }
			closed {
				sessions   = %d
				iterations = 1
			}
		}`, name, target, dataset, sessions)
}

// Each phase of a target is told what earlier ones have left there, and what it writes can be told from what others wrote. All that they may take
// together stays within the policy, and is counted as long as it is there.
func TestWhatAStoreIsTold(t *testing.T) {
	d := new(paper)
	phases := paperPhase("a", "t", "shared", 3) + paperPhase("b", "t", "own", 5) + paperPhase("c", "t", "shared", 4)
	e := onPaper(t, d, phases)
	steps := []worker.Step{{Phase: "a", From: 1, To: 3}, {Phase: "b", From: 1, To: 4}, {Phase: "c", From: 0, To: 4}}
	for i := range steps {
		steps[i].Seq, steps[i].Kind, steps[i].Last = i, worker.Load, true
	}
	for i, step := range steps {
		prepared(t, e, step)
		require.EqualValues(t, 7*(i+1), e.Progress(), "bytes written")
		require.EqualValues(t, 100*(i+1), e.localBytes())
		ran(t, e)
	}
	require.Zero(t, e.localBytes(), "the last one's files are gone")
	require.Equal(t, []int{3, 3}, []int{d.closed, d.removed})
	epochs := map[uint64]bool{}
	for i, want := range []localfile.Site{
		{Root: "/logs", Name: "t", From: 1, To: 3, Sessions: 3, Fresh: true, Had: map[int]bool{}, Value: driver.Value{Size: 100}, Keys: 20},
		{Root: "/logs", Name: "t", From: 1, To: 4, Sessions: 5, Had: map[int]bool{1: true, 2: true}, Value: driver.Value{Size: 50}, Keys: 8, Pools: true},
		{Root: "/logs", Name: "t", From: 0, To: 4, Sessions: 4, Had: map[int]bool{1: true, 2: true, 3: true}, Held: true, Value: driver.Value{Size: 100}, Keys: 20},
	} {
		got := d.sites[i]
		epochs[got.Epoch] = true
		require.Equal(t, EpochOf("r1", steps[i].Phase), got.Epoch)
		got.Epoch, got.Memory, got.Wrote = 0, nil, nil
		require.Equal(t, want, got)
	}
	require.Len(t, epochs, 3)

	e = onPaper(t, new(paper), phases)
	e.cfg.Policy = &policy.Policy{LogBytes: 250}
	for _, step := range steps[:2] {
		prepared(t, e, step)
		ran(t, e)
	}
	_, err := e.Prepare(t.Context(), steps[2])
	require.ErrorContains(t, err, "log_bytes: ")
}

// A device is watched for a while before the load, then from the beginning of its first step to the end of its last, and for a while after it.
func TestADeviceIsWatched(t *testing.T) {
	for _, blind := range []error{nil, errors.New("it is gone")} {
		d := &paper{blind: blind}
		e := onPaper(t, d, paperPhase("a", "t", "shared", 1))
		var final worker.Final
		for i := range 2 {
			prepared(t, e, worker.Step{Phase: "a", Seq: i, Kind: worker.Load, To: 1, Last: i == 1})
			final = ran(t, e)
		}
		require.Len(t, final.Log.Devices, 1)
		got := final.Log.Devices[0]
		require.Equal(t, []any{"/dev/paper", "8:1"}, []any{got.Name, got.Number})
		require.Nil(t, got.Flushes)
		if blind != nil {
			require.Equal(t, []any{blind.Error(), blind.Error()}, []any{got.NoBytes, got.NoFlushes})
			require.Nil(t, got.Bytes)
			continue
		}
		require.Positive(t, got.Before.Seconds)
		require.Equal(t, "it has no cache", got.NoFlushes)
		require.Positive(t, got.After.Seconds)
		require.Equal(t, []float64{100, 100, 100}, []float64{got.Before.Bytes, *got.Bytes, got.After.Bytes})
	}
}

// A store that cannot be opened ends the preparation with the reason, and nothing is known of it later.
func TestStoresThatCannotBeOpened(t *testing.T) {
	gone := errors.New("gone")
	for _, tt := range []struct {
		fail   func(d *paper)
		opened int
		want   string
	}{
		{func(d *paper) { d.need = gone }, 0, "gone"},
		{func(d *paper) { d.open = gone }, 1, "gone"},
		{func(d *paper) { d.blown = true }, 0, "driver panicked at local_test.go:"},
	} {
		d := new(paper)
		e := onPaper(t, d, paperPhase("a", "t", "shared", 1))
		tt.fail(d)
		_, err := e.Prepare(t.Context(), stepOf(e.plan.Phases[0], worker.Load))
		require.ErrorContains(t, err, `target "t": `+tt.want)
		require.Len(t, d.sites, tt.opened)
		require.Empty(t, e.locals)
	}
}

// The files of a phase that was prepared and not carried out are closed and removed before another one is prepared, or with the engine.
func TestFilesOfAPhaseThatWasGivenUp(t *testing.T) {
	for _, next := range []bool{false, true} {
		d := &paper{end: errors.New("no space")}
		e := onPaper(t, d, paperPhase("a", "t", "shared", 1)+paperPhase("b", "u", "shared", 1))
		var said bytes.Buffer
		e.cfg.Logger = slog.New(slog.NewTextHandler(&said, nil))
		loaded(t, e)
		require.Zero(t, d.closed)
		if next {
			prepared(t, e, stepOf(e.plan.Phases[1], worker.Load))
		} else {
			e.Close()
		}
		require.Equal(t, []int{1, 1}, []int{d.closed, d.removed})
		require.Contains(t, said.String(), `msg="close log files" err="no space"`)
		e.Close()
		require.Equal(t, []int{1, 1}, []int{d.closed, d.removed}, "once")
	}
}

// There is a thread for each session of files, and one for the rest of the process.
func TestThreadsOfFiles(t *testing.T) {
	before := runtime.GOMAXPROCS(0)
	defer runtime.GOMAXPROCS(before)
	e := onPaper(t, new(paper), paperPhase("a", "t", "shared", before+3))
	ready := loaded(t, e)
	require.Equal(t, before+3, ready.Loops)
	require.Equal(t, before+4, runtime.GOMAXPROCS(0))
}

// endingStore is a store whose end is a test's.
type endingStore struct {
	localfile.Store
	claim         []byte
	failed, stays error
}

func (c endingStore) Close() ([]byte, error) {
	claim, err := c.Store.Close()
	if c.claim == nil {
		claim = nil
	}
	return claim, cmp.Or(c.failed, err)
}

func (c endingStore) Remove() error { return cmp.Or(c.stays, c.Store.Remove()) }

// TestHowALogIsSettled says what became of what was written, and why it is not proven.
func TestHowALogIsSettled(t *testing.T) {
	for name, c := range map[string]struct {
		store          endingStore
		unproven, said string
		again          string // why a later phase does not load the same files
	}{
		"proven":      {endingStore{claim: []byte{1}}, "", "", ""},
		"not closed":  {endingStore{claim: []byte{1}, failed: errors.New("no space")}, "no space", "", `failed in phase "write"`},
		"no claim":    {endingStore{}, "the layout keeps nothing that could be verified", "", ""},
		"not removed": {endingStore{claim: []byte{1}, stays: errors.New("busy")}, "", `msg="remove log files" err=busy`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			p := logPlan(t, "", logPhase("write", "ops = { append = 1 }\n closed {\n iterations = 10\n}")+
				logPhase("again", "ops = { append = 1 }\n closed {\n iterations = 10\n}"))
			e, _ := localEngine(t, p)
			var said bytes.Buffer
			e.cfg.Logger = slog.New(slog.NewTextHandler(&said, nil))
			for i, phase := range []string{"write", "again"} {
				step := stepOf(p.Phase(phase), worker.Load)
				_, err := e.Prepare(t.Context(), step)
				if i == 1 && c.again != "" {
					require.ErrorContains(t, err, c.again)
					return
				}
				require.NoError(t, err)
				c.store.Store = e.group.files.store
				e.group.files.store = c.store
				final := ran(t, e)
				require.Equal(t, c.unproven, final.Log.Unproven)
				require.Equal(t, c.unproven == "", final.Log.Proof != nil)
			}
			require.Equal(t, c.said != "", strings.Contains(said.String(), cmp.Or(c.said, "remove")), said.String())
		})
	}
}

// moodyDriver is the log driver whose sessions say to some requests that they are errors or misses.
type moodyDriver struct {
	logdriver.Driver
	failed error // in place of a session
}

type moodyStore struct {
	localfile.Store
	failed error
}

type moodySession struct {
	localfile.Session
	n int
}

func (d moodyDriver) Open(ctx context.Context, config any, site localfile.Site) (localfile.Store, error) {
	store, err := d.Driver.Open(ctx, config, site)
	return moodyStore{store, d.failed}, err
}

func (s moodyStore) Session(i int) (localfile.Session, error) {
	session, err := s.Store.Session(i)
	return &moodySession{Session: session}, cmp.Or(s.failed, err)
}

func (s *moodySession) Do(req *driver.Request, reply *driver.Reply) error {
	switch s.n++; s.n % 4 {
	case 1:
		reply.Outcome, reply.Message = driver.Error, []byte("no room")
		return nil
	case 2:
		reply.Outcome = driver.Miss
		return nil
	}
	return s.Session.Do(req, reply)
}

// TestOutcomesOfLogs are what sessions say: an error that a session reports is the op's, and no end of the log.
func TestOutcomesOfLogs(t *testing.T) {
	final := carryOutOf(t, 2, moodyDriver{}, logPlan(t, "", logPhase("load", "ops = { append = 1 }\n closed {\n sessions = 2\n iterations = 400\n}")))
	o := final.Totals.Ops[driver.Append]
	require.EqualValues(t, 800, o.Due)
	require.Equal(t, [3]uint64{400, 200, 200}, [3]uint64{o.Outcomes[driver.OK], o.Outcomes[driver.Miss], o.Outcomes[driver.Error]})
	require.EqualValues(t, 400*100, o.Out, "values that were stored")
	require.Equal(t, measure.Requests{Sent: 800, Answered: 600, Error: 200}, *final.Totals.Request(0, driver.Append))
	require.Equal(t, map[string]uint64{"no room": 200}, maps.Collect(final.Totals.Errors.All()))
	require.Empty(t, final.Log.Failure)
}

// TestSessionOfALogThatCannotBegin ends the preparation.
func TestSessionOfALogThatCannotBegin(t *testing.T) {
	p := logPlan(t, "", logPhase("load", "ops = { append = 1 }\n closed { iterations = 1 }"))
	root := t.TempDir()
	e := assigned(t, Config{Loops: 1, Drivers: []driver.Driver{moodyDriver{failed: errors.New("no memory")}}, LogRoot: func() (string, error) { return root, nil }}, p)
	_, err := e.Prepare(t.Context(), stepOf(p.Phases[0], worker.Load))
	require.ErrorContains(t, err, "no memory")
	e.Close()
	left, err := os.ReadDir(root)
	require.NoError(t, err)
	require.Empty(t, left)
}

// TestNoAllocationPerLogOp counts allocations of the real loop over real files.
func TestNoAllocationPerLogOp(t *testing.T) {
	for _, load := range []string{"closed { duration = \"1h\" }", "open {\n rate = \"10M/s\"\n duration = \"1h\"\n sessions = 1\n}"} {
		e, _ := localEngine(t, logPlan(t, "", logPhase("write", "ops = { append = 3, read = 1 }\n "+load)))
		loaded(t, e)
		l := e.group.loops[0]
		l.begin(e.clock.now(), make(chan part, 1000))
		l.enter()
		l.sealAt = never // a seal allocates, and on a busy machine one may come due
		for range 200 {
			require.True(t, l.cycle())
		}
		before := e.group.files.store.Log().Bytes
		require.Zero(t, testing.AllocsPerRun(50, func() { l.cycle() }))
		require.Greater(t, e.group.files.store.Log().Bytes, before+30*100)
	}
}
