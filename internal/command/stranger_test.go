package command_test

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/loadgen/loadgen/internal/fleet/identity"
	pb "github.com/loadgen/loadgen/internal/fleet/rpc/loadgenpb"
	"github.com/loadgen/loadgen/internal/servertest"
)

// strangerTask is set for a process of this test binary that belongs to another user: a task in JSON.
const strangerTask = "LOADGEN_TEST_STRANGER"

// task is what a stranger tries; told is the outcome of one attempt.
type (
	task struct {
		Fleet   string // directory of the user's keys and sockets
		Network string // where a coordinator of the user's listens; "": be one
		Addr    string
		Open    bool // the directory has been opened to everybody
	}
	told struct {
		Attempt string
		Addr    string `json:",omitempty"` // where the stranger waits for workers
		Refused bool   // the other end ended it, or it could not be begun
		Heard   string // what came before
	}
)

const (
	strangersPatience = time.Minute // bounds each attempt
	nobody            = 65534
)

// stranger does a task, and writes a line for each attempt.
func stranger(text string) int {
	var t task
	if err := json.Unmarshal([]byte(text), &t); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	if t.Network == "" {
		falseCoordinators()
		return 0
	}
	if !t.Open {
		t.enter()
	}
	attempts := map[string]credentials.TransportCredentials{
		"in clear": insecure.NewCredentials(), "no certificate": credentials.NewTLS(&tls.Config{InsecureSkipVerify: true}), "another key": own(identity.Worker),
	}
	for name, proof := range attempts {
		tell(t.join(name, proof))
	}
	for name, says := range map[string]string{"nothing": "", "HTTP": "GET / HTTP/1.1\r\n\r\n", "HTTP/2": "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"} {
		tell(t.talk(name, says))
	}
	return 0
}

// enter tries what is in the directory.
func (t *task) enter() {
	key, err := os.ReadFile(filepath.Join(t.Fleet, "authority.pem"))
	tell(told{Attempt: "read the key", Refused: err != nil, Heard: string(key)})
	names, err := os.ReadDir(t.Fleet)
	tell(told{Attempt: "list the directory", Refused: err != nil, Heard: fmt.Sprint(names)})
	lis, err := net.Listen("unix", filepath.Join(t.Fleet, "false.sock"))
	tell(told{Attempt: "listen in the directory", Refused: err != nil})
	if err == nil {
		_ = lis.Close() // it should not be there
	}
}

// tell writes a line.
func tell(w told) {
	_ = json.NewEncoder(os.Stdout).Encode(w) // who reads it misses it
}

// own returns credentials of the stranger's own authority.
func own(role identity.Role) credentials.TransportCredentials {
	a, err := identity.NewAuthority()
	if err != nil {
		panic(err)
	}
	return a.Credentials(role)
}

// join says hello to the coordinator, and waits for what comes.
func (t *task) join(attempt string, proof credentials.TransportCredentials) told {
	ctx, cancel := context.WithTimeout(context.Background(), strangersPatience)
	defer cancel()
	cc, err := grpc.NewClient("passthrough:///x", grpc.WithTransportCredentials(proof),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, t.Network, t.Addr)
		}))
	if err != nil {
		panic(err)
	}
	defer cc.Close()
	stream, err := pb.NewControlClient(cc).Join(ctx)
	if err == nil {
		err = stream.Send(&pb.FromWorker{Hello: &pb.Hello{Protocol: 3, Name: "w1", Incarnation: "x", Host: "here", Version: "v1"}})
	}
	if err != nil && !errors.Is(err, io.EOF) {
		return told{Attempt: attempt, Refused: ctx.Err() == nil}
	}
	msg, err := stream.Recv()
	if err != nil {
		return told{Attempt: attempt, Refused: ctx.Err() == nil}
	}
	return told{Attempt: attempt, Heard: msg.String()}
}

// talk says something in clear, and reads until it is ended.
func (t *task) talk(attempt, says string) told {
	conn, err := net.DialTimeout(t.Network, t.Addr, strangersPatience)
	if err != nil {
		return told{Attempt: attempt, Refused: true}
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(strangersPatience))
	_, _ = io.WriteString(conn, says) // it may have been ended
	heard, err := io.ReadAll(conn)
	var timeout net.Error
	return told{Attempt: attempt, Refused: !errors.As(err, &timeout) || !timeout.Timeout(), Heard: string(heard)}
}

// falseCoordinators waits for workers at ports of its own, and sends orders to those that connect.
func falseCoordinators() {
	var all sync.WaitGroup
	for name, proof := range map[string]credentials.TransportCredentials{"in clear": insecure.NewCredentials(), "another key": own(identity.Coordinator)} {
		all.Go(func() { falseCoordinator(name, proof) })
	}
	all.Wait()
}

// falseCoordinator sends orders to whoever connects, without checking who that is.
func falseCoordinator(name string, proof credentials.TransportCredentials) {
	lis, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	tap := &tap{Listener: lis, again: make(chan struct{}, 1)}
	o := &orders{}
	server := grpc.NewServer(grpc.Creds(proof))
	pb.RegisterControlServer(server, o)
	go func() { _ = server.Serve(tap) }() // ends with Stop
	tell(told{Attempt: name, Addr: lis.Addr().String()})
	w := told{Attempt: name}
	select { // the worker has come again: it has refused the first time
	case <-tap.again:
		w.Refused = true
	case <-time.After(strangersPatience):
	}
	server.Stop()
	w.Heard = o.heard.String() + tap.String()
	tell(w)
}

// greedyPlan names a file and a secret of the worker's, for a place of the stranger's.
const greedyPlan = `
plan "greedy" {}
target "t" {
	driver    = "redis"
	endpoints = ["127.0.0.1:1"]
	password  = secret("CACHE")
}
dataset "d" {
	keys { file = "keys" }
	values { size = 1 }
}
phase "p" {
	target  = target.t
	dataset = dataset.d
	ops     = { get = 1 }
	closed {
		sessions   = 16
		iterations = 1
	}
}
`

// orders is a coordinator that sends everything it can at once, and records the answers.
type orders struct {
	pb.UnimplementedControlServer
	heard text
}

func (o *orders) Join(stream grpc.BidiStreamingServer[pb.FromWorker, pb.FromCoordinator]) error {
	a, err := assignmentOf(greedyPlan, int64(len(canary)))
	if err != nil {
		panic(err)
	}
	envelope := func(n uint64, e *pb.Envelope) *pb.FromCoordinator {
		e.Number = n
		return &pb.FromCoordinator{Envelope: e}
	}
	for _, m := range []*pb.FromCoordinator{
		{Welcome: &pb.Welcome{Protocol: 3, Run: "r", HeartbeatNs: 1e9, LeaseNs: 1e10}},
		{Echo: &pb.Echo{}},
		envelope(1, &pb.Envelope{Kind: "assign", Facts: []byte(`{"RunID": "r", "Digest": "` + a.Digest + `", "Workers": 1}`), Content: a.Plan}),
		envelope(2, &pb.Envelope{Kind: "prepare", Facts: []byte(`{"Phase": "p", "Kind": "load", "Last": true, "To": 16}`)}),
		envelope(3, &pb.Envelope{Kind: "start", Facts: []byte("0")}),
	} {
		if err := stream.Send(m); err != nil {
			return err
		}
	}
	for {
		m, err := stream.Recv()
		if err != nil {
			return err
		}
		fmt.Fprintln(&o.heard, m)
	}
}

// tap keeps what is said on a listener's connections.
type tap struct {
	net.Listener
	text
	again chan struct{} // holds one: a second connection has come
	come  int
}

func (t *tap) Accept() (net.Conn, error) {
	conn, err := t.Listener.Accept()
	if err != nil {
		return nil, err
	}
	if t.come++; t.come == 2 {
		t.again <- struct{}{}
	}
	return &tapped{conn, t}, nil
}

type tapped struct {
	net.Conn
	tap *tap
}

func (c *tapped) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	_, _ = c.tap.Write(b[:n])
	return n, err
}

// beginStranger runs this test binary as another user, and returns its lines.
func beginStranger(t *testing.T, what task) *json.Decoder {
	t.Helper()
	exe := filepath.Join(filepath.Dir(servertest.SocketPath(t)), "stranger") // where everybody may begin it
	// Another process writes it: what this one had open for writing, a test beside this one could hand on to a process that it begins.
	require.NoError(t, exec.Command("install", "-m", "0755", fmt.Sprintf("/proc/%d/exe", os.Getpid()), exe).Run())
	task, err := json.Marshal(what)
	require.NoError(t, err)
	cmd := exec.Command(exe)
	cmd.Dir = "/"
	cmd.Env = []string{strangerTask + "=" + string(task)}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
	out, in, err := os.Pipe()
	require.NoError(t, err)
	var said text
	cmd.Stdout, cmd.Stderr = in, &said
	start(t, cmd)
	require.NoError(t, in.Close())
	require.NoError(t, out.SetReadDeadline(time.Now().Add(10*time.Minute)))
	t.Cleanup(func() { _ = out.Close() })
	return json.NewDecoder(out)
}

// TestStrangersGetNothing: another user of the machine connects to a coordinator, and poses as one to a worker. He gets no answer, none of his orders
// is carried out, and the run goes on as if he were not there.
func TestStrangersGetNothing(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		servertest.Require(t, "users", errors.New("only root can begin a process of another user"))
	}
	servertest.Require(t, "users", nil)
	for _, place := range []string{"127.0.0.1:0", "socket:attacked"} {
		t.Run(place, func(t *testing.T) { strangersJoin(t, place) })
	}
	t.Run("a worker", strangersCommand)
}

// tellsSomething matches what nobody else may learn: names of files, places and workers, hashes, and the content of files and secrets.
var tellsSomething = regexp.MustCompile(`authority|\.pem|\.sock|/fleet|w1|` + canary + `|[0-9a-f]{32}`)

// refusedAll reads the outcomes of a stranger's attempts: each was refused, and exactly n were made.
func refusedAll(t *testing.T, lines *json.Decoder, n int) {
	t.Helper()
	for range n {
		var w told
		require.NoError(t, lines.Decode(&w))
		require.True(t, w.Refused, "%s: %s", w.Attempt, w.Heard)
		require.NotRegexp(t, tellsSomething, w.Heard, w.Attempt)
		require.NotContains(t, w.Heard, "loadgen", w.Attempt)
		require.Less(t, len(w.Heard), 256, "%s: %s", w.Attempt, w.Heard) // a TLS alert, a frame that says no more than that
	}
	require.ErrorIs(t, lines.Decode(new(told)), io.EOF)
}

// strangersJoin has a stranger connect to a coordinator that waits for its worker.
func strangersJoin(t *testing.T, place string) {
	state := filepath.Dir(servertest.SocketPath(t)) // which everybody can enter
	addr := servertest.Redis(t)
	tm := invite(t, 1, func(args ...string) *load {
		dir := t.TempDir()
		path := filepath.Join(dir, "plan.hcl")
		require.NoError(t, os.WriteFile(path, []byte(closedPlan), 0o600))
		l := &load{runs: filepath.Join(dir, "runs"), out: filepath.Join(dir, "run.json")}
		cmd := command(t, append([]string{"coordinator", "run", path, "--runs", l.runs, "--out", l.out}, args...)...)
		cmd.Env = append(cmd.Env, "XDG_STATE_HOME="+state)
		l.process = start(t, cmd)
		return l
	}, "--debug", "--listen", place, "-var", nodes(addr), "-var", "duration=1s")
	what := task{Fleet: filepath.Join(state, "loadgen", "fleet"), Network: "tcp", Addr: tm.addr}
	if name, ok := strings.CutPrefix(tm.addr, "socket:"); ok {
		what.Network, what.Addr = "unix", filepath.Join(what.Fleet, name+".sock")
	}
	refusedAll(t, beginStranger(t, what), 9)
	if what.Network == "unix" { // though its owner lets everybody in, the kernel says who it is that comes
		require.NoError(t, errors.Join(os.Chmod(what.Fleet, 0o777), os.Chmod(filepath.Dir(what.Fleet), 0o777), os.Chmod(what.Addr, 0o666)))
		what.Open = true
		refusedAll(t, beginStranger(t, what), 6)
		require.Eventually(t, func() bool {
			return strings.Contains(tm.stderr.String(), fmt.Sprintf("the other end runs as user %d", nobody))
		}, strangersPatience, 5*time.Millisecond) // it writes that while the stranger is told
		require.NoError(t, os.Chmod(what.Fleet, 0o700))
	}
	require.Contains(t, tm.stderr.String(), "refused a connection")
	tm.join(tm.addr)
	r := tm.whole()
	require.Equal(t, []string{"w1"}, r.Workers)
}

// obeys shows that the same orders are carried out if they come from the user's own coordinator: the worker reads the file.
func obeys(t *testing.T, files string) {
	o := order(t, greedyPlan, int64(len(canary)), files, 10*time.Second)
	ctx, cancel := context.WithTimeout(t.Context(), strangersPatience)
	defer cancel()
	o.prepare(ctx)
	require.ErrorContains(t, <-o.ended, "127.0.0.1:1")
}

// strangersCommand has a worker connect to a stranger who listens where its coordinator would.
func strangersCommand(t *testing.T) {
	lines := beginStranger(t, task{})
	files := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(files, "keys"), []byte(canary), 0o600))
	worker := func(at, state string) *process {
		cmd := command(t, "worker", "--join", at, "--name", "w1", "--once", "--debug", "--files", files, "--secret", "CACHE=127.0.0.0/8:1-65535")
		cmd.Env = append(cmd.Env, "LOADGEN_SECRET_CACHE="+canary)
		if state != "" {
			cmd.Env = append(cmd.Env, "XDG_STATE_HOME="+state)
		}
		return start(t, cmd)
	}
	obeys(t, files)
	var came []*process
	for range 2 {
		var w told
		require.NoError(t, lines.Decode(&w))
		came = append(came, worker(w.Addr, ""))
	}
	for range 2 {
		var w told
		require.NoError(t, lines.Decode(&w))
		require.True(t, w.Refused, "%s: %s", w.Attempt, w.Heard)
		require.NotEmpty(t, w.Heard, "it has come, or else this shows nothing")
		require.NotRegexp(t, tellsSomething, w.Heard)
	}
	for _, p := range came {
		require.Contains(t, p.stderr.String(), "something listens there, but does not take this worker")
	}
	state := t.TempDir() // the stranger was there before the worker
	fleet := filepath.Join(state, "loadgen", "fleet")
	require.NoError(t, os.MkdirAll(fleet, 0o700))
	require.NoError(t, os.Chown(fleet, nobody, nobody))
	p := worker("socket:coordinator", state)
	require.Eventually(t, func() bool {
		return strings.Contains(p.stderr.String(), fmt.Sprintf("belongs to user %d, not to you", nobody))
	}, strangersPatience, 5*time.Millisecond)
}
