package plan

import (
	"fmt"
	"math"
	"slices"
	"sort"
	"strings"
	"time"

	"github.com/loadgen/loadgen/internal/plan/pace"
	"github.com/loadgen/loadgen/pkg/driver"
)

// The cost of a load for its worker. These are high estimates, to tell before a run whether it will fit.
const (
	sessionBytes    = 4 << 10  // state of a session and its streams
	slotBytes       = 1 << 10  // an op in flight: key, program state, timers
	sceneBytes      = 256      // each further op of a scenario in flight
	itemBytes       = 256      // a key of a chain in flight, and of the puts of its rest
	valueCopies     = 3        // copies of a value: in a buffer that grows by doubling, and in the one it grew from
	leastLent       = 8 << 10  // an event loop sends a value of this size without a copy
	recordCopies    = 2        // further copies of a record: it is made once to learn its size, in a buffer that grows by doubling
	connectionBytes = 8 << 10  // a connection's state, its queue of outstanding requests, and data to be written
	pipeBytes       = 96 << 10 // a connection's further memory off the event loop: two goroutines, buffers between them and the loop, and TLS buffers
	histogramBytes  = 58 << 10 // the largest histogram, 7,296 buckets
	processBytes    = 32 << 20 // the program itself
	mostRows        = 4096     // per phase: one a second, fewer in longer phases
	rowBytes        = 256      // a row without its response histogram: 154 measured in a series of 600
	rowOpBytes      = 4        // a row's histogram per op of the row: 3.1 measured at 20 ops/s, 0.06 at 20,000
	rowHistogram    = 5 << 9   // the histogram's largest size: 1,280 measured at 20,000 ops/s, 2,048 at 200,000
	mostStretches   = 128      // per phase: intervals whose counts are kept separately, so that the beginning can be excluded
	stretchBytes    = 8 << 10  // per verb: 4,332 measured at 20,000 ops/s, 6,498 at 200,000
	sampleBytes     = 1 << 10  // a kept op: about 170 with an error, in its loop's sample, in the worker's, among those that all workers sent, and as text
	leftBytes       = 8 << 10  // garbage per second, collected when memory gets short: 6,500 measured with three copies of a key on four loops
	spareFiles      = 64       // open files that are not connections: standard streams, pollers, logs, the control plane
)

// SpareReplies is how many bytes incomplete replies may take on a worker beyond the need of the plan's values.
const SpareReplies = 128 << 20

// Load says what a phase, or all phases, will do and need, as far as that is known before the run. Several workers share the load.
type Load struct {
	Name          string         // the phase's name; "" for all phases
	Ops           *int64         // of the load itself; for an open load the expected number; nil when only the run can tell
	Requests      *int64         // for Ops if every request is answered: ops × fan-out, which is N or R when replicated; also nil for batches on several endpoints
	SetupOps      int64          // untimed puts before the load
	SetupRequests int64          //
	Duration      *time.Duration // nil when the target's speed decides; for a search an upper bound
	Sessions      int
	Connections   int64 // sessions × endpoints

	// Memory is what one worker needs for all of it, in bytes, the sum of
	//
	//   - 32 MiB;
	//   - 4 KiB per session;
	//   - 8 KiB per connection, 104 KiB off the event loop;
	//   - per op that can be in flight 1 KiB and 256 bytes for each further op of its scenario;
	//   - three times the largest value per connection or, if requests with values are copied before they leave, per op that can be in flight (five
	//     times for records); none for a clear phase;
	//   - replies that a driver holds whole, up to 128 MiB;
	//   - 58 KiB per histogram: 7 for each op of the mix, scenario and step, and N more for each op of the mix when replicated;
	//   - keys and values from files, and 16 MiB of text that values are cut from;
	//   - 1 KiB per sample;
	//   - the data kept of each second (see kept); with remote workers, the coordinator needs this memory;
	//   - 8 KiB of garbage per second of Duration. It is collected late, so as not to disturb the load, but sooner where there is no room.
	Memory int64
}

// Predict returns the load of each phase of the plan and of all of them. all holds the sums of ops, requests and durations. For the rest it
// holds the maximum over phases, which run one after another. The plan must be valid.
func (p *Plan) Predict() (phases []Load, all Load) {
	zero, none := int64(0), time.Duration(0)
	all = Load{Ops: &zero, Requests: &zero, Duration: &none}
	for _, ph := range p.Phases {
		l := p.predict(ph)
		phases = append(phases, l)
		t := &all
		t.Ops, t.Requests, t.Duration = sum(t.Ops, l.Ops), sum(t.Requests, l.Requests), sum(t.Duration, l.Duration)
		t.SetupOps, t.SetupRequests = add(t.SetupOps, l.SetupOps), add(t.SetupRequests, l.SetupRequests)
		t.Sessions, t.Connections = max(t.Sessions, l.Sessions), max(t.Connections, l.Connections)
		t.Memory = max(t.Memory, l.Memory)
	}
	return phases, all
}

// predict is Predict for one phase.
func (p *Plan) predict(ph *Phase) Load {
	t, d := p.Target(ph.Target), p.Dataset(ph.Dataset)
	endpoints, each := p.EndpointsOf(ph), int64(0)
	for _, n := range endpoints {
		each += int64(n)
	}
	l := Load{Name: ph.Name, Sessions: ph.Sessions()}
	l.Ops, l.Duration = p.opsOf(ph, d)
	if l.Ops != nil && ph.Chain() == nil && (ph.Batch == 1 || each == 1) {
		requests := scale(*l.Ops, p.RequestsPerOp(ph))
		l.Requests = &requests
	}
	if len(ph.Setup) > 0 {
		l.SetupOps = p.Once(ph, true)
		l.SetupRequests = scale(l.SetupOps, fanout(t.Replication, ph.Setup))
	}
	l.Connections = multiply(int64(l.Sessions), each)
	l.Memory = p.Memory(ph, l.Sessions, endpoints)
	if l.Duration != nil {
		l.Memory = add(l.Memory, scale(leftBytes, l.Duration.Seconds()))
	}
	return l
}

// EndpointsOf returns the number of endpoints of each target of a phase, by target name, as far as the plan knows.
func (p *Plan) EndpointsOf(ph *Phase) map[string]int {
	all := map[string]int{}
	for _, name := range ph.Targets() {
		t := p.Target(name)
		all[name] = len(t.Endpoints)
		if t.Builtin != nil {
			all[name] = t.Builtin.Nodes
		}
	}
	return all
}

// RequestsPerOp returns the mean number of requests per op of a phase's load if every request is answered. An op of several keys counts as one, though
// it may ask several endpoints.
func (p *Plan) RequestsPerOp(ph *Phase) float64 {
	if c := ph.Chain(); c != nil && ph.Trace().Lines > 0 { // each key may be asked for and put
		return 2 * float64(c.Keys) / float64(ph.Trace().Lines)
	}
	if len(ph.Targets()) == 1 || len(ph.Scenarios) == 0 {
		return fanout(p.Target(ph.Target).Replication, ph.Ops)
	}
	requests, ops := 0.0, 0.0
	for _, s := range ph.Scenarios {
		for i := range s.Steps {
			step := &s.Steps[i]
			weight := s.Weight * float64(step.Repeat())
			requests += weight * fanout(p.Target(step.TargetIn(ph)).Replication, []Weight{{step.Op, 1}})
			ops += weight
		}
	}
	return requests / ops
}

// Memory returns the bytes that a worker needs to drive that many sessions of a phase: see [Load]. clients is the number of connections that
// each session has per target: one per endpoint or, for clients that block, one per op that it can have in flight.
func (p *Plan) Memory(ph *Phase, sessions int, clients map[string]int) int64 {
	return add(p.idle(ph, sessions, clients), multiply(p.flying(ph, sessions), p.opBytes(ph)))
}

// idle returns the bytes that sessions need while none of their ops is in flight.
func (p *Plan) idle(ph *Phase, sessions int, clients map[string]int) int64 {
	histograms := int64(7 * (len(ph.Counted()) + len(ph.Scenarios) + ph.countSteps()))
	session, replicas := int64(sessionBytes), 0
	for name, n := range clients {
		session = add(session, multiply(int64(n), connectionBytes))
		if p.ExecutorOf(ph) != EventLoop {
			session = add(session, multiply(int64(n), pipeBytes))
		}
		if r := p.Target(name).Replication; r != nil {
			replicas = max(replicas, r.N)
		}
	}
	histograms += int64(replicas * len(ph.Ops))
	need := add(processBytes+histograms*histogramBytes, multiply(int64(sessions), session))
	need = add(need, p.kept(ph))
	need = add(need, p.values(ph, sessions, clients))
	need = add(need, multiply(int64(ph.Samples), sampleBytes))
	for _, name := range ph.Datasets() {
		d := p.Dataset(name)
		if f := d.Keys.File; f != nil {
			need = add(need, f.Bytes)
		}
		if f := d.Values.File; f != nil {
			need = add(need, f.Bytes)
		}
	}
	if slices.ContainsFunc(ph.Datasets(), func(name string) bool { _, of := p.Texts(ph, name); return of > driver.ShortText }) {
		need = add(need, driver.LongText)
	}
	return need
}

// kept returns the bytes that a phase keeps of past seconds: rows of its series, and counts of each verb, scenario and step by interval. Both
// are bounded, so a phase of a day keeps no more than one of 68 minutes. If only the target decides the duration, at most a second per op
// is assumed.
func (p *Plan) kept(ph *Phase) int64 {
	ops, duration := p.opsOf(ph, p.Dataset(ph.Dataset))
	seconds := int64(mostRows)
	switch {
	case duration != nil:
		seconds = int64(math.Ceil(duration.Seconds()))
	case ops != nil:
		seconds = *ops
	}
	rows := min(seconds, mostRows)
	responses := rows * rowHistogram
	if ops != nil {
		responses = min(responses, multiply(*ops, rowOpBytes))
	}
	counts := min(seconds, mostStretches) * stretchBytes * int64(max(1, len(ph.Ops)+len(ph.Scenarios)+ph.countSteps()))
	return rows*rowBytes + responses + counts
}

// flying returns how many ops the given number of a phase's sessions can have in flight.
func (p *Plan) flying(ph *Phase, sessions int) int64 {
	most := scale(inFlight(ph), float64(sessions)/float64(ph.Sessions()))
	if ph.walks() {
		most = min(most, p.Once(ph, false))
	}
	return most
}

// opBytes returns the bytes that an op in flight needs.
func (p *Plan) opBytes(ph *Phase) int64 {
	most := int64(0)
	for _, name := range ph.Datasets() {
		values := p.Dataset(name).Values
		copies := int64(valueCopies)
		if values.Record != nil {
			copies += recordCopies
		}
		if p.copies(ph, values) {
			most = max(most, multiply(copies*int64(max(1, ph.Batch)), int64(values.Size)))
		}
	}
	if c := ph.Chain(); c != nil {
		most = add(most, int64(c.Longest)*itemBytes)
	}
	return slotBytes + int64(ph.MostSteps()-1)*sceneBytes + most
}

// copies reports whether the value of each op in flight can have a copy of its own. Otherwise each connection has one: replies come one after another,
// and large values of text are sent without a copy.
func (p *Plan) copies(ph *Phase, values Values) bool {
	alike := values.Size >= leastLent && values.Sizes == nil && values.text()
	lent := alike && !values.Checked && len(ph.Scenarios) == 0 && p.ExecutorOf(ph) == EventLoop
	return ph.Clear == nil && (ph.Batch > 1 || !lent && ph.stores())
}

// Texts returns how much text the largest and the smallest values that a phase puts of a dataset are cut from ([driver.TextOf]); 0 if they are not text.
func (p *Plan) Texts(ph *Phase, name string) (largest, smallest uint64) {
	v := &p.Dataset(name).Values
	if !v.text() || !ph.stores() || slices.ContainsFunc(ph.Ops, func(w Weight) bool { return w.Op == driver.Append.String() }) {
		return 0, 0
	}
	return driver.TextOf(v.Size), driver.TextOf(v.LeastSize())
}

// stores reports whether any op of the phase can store a value.
func (ph *Phase) stores() bool {
	return ph.OnMiss != "" || ph.Trace() != nil || slices.ContainsFunc(slices.Concat(ph.Ops, ph.Setup), Weight.stores)
}

// values returns the bytes of values and held replies on connections.
func (p *Plan) values(ph *Phase, sessions int, clients map[string]int) int64 {
	if ph.Clear != nil {
		return 0
	}
	connections, largest, held := int64(0), 0, int64(0)
	for _, name := range ph.Datasets() {
		if values := p.Dataset(name).Values; !p.copies(ph, values) {
			largest = max(largest, values.Size)
		}
	}
	for name, n := range clients {
		own := multiply(int64(sessions), int64(n))
		connections = add(connections, own)
		holder, holds := p.Target(name).Config.(interface{ Held() int64 })
		if holds && slices.ContainsFunc(ph.DatasetsOn(name), func(d string) bool { return p.Dataset(d).Values.Checked }) {
			held = min(add(held, multiply(own, holder.Held())), SpareReplies)
		}
	}
	return add(held, multiply(min(connections, p.flying(ph, sessions)), valueCopies*int64(largest)))
}

// ReplyBytes returns the bytes of the replies to all ops that the given number of a phase's sessions can have in flight. Each reply is taken to
// be as long as the longest value of the phase's datasets, in a buffer that grows by doubling.
func (p *Plan) ReplyBytes(ph *Phase, sessions int) int64 {
	replicas := 1
	for _, name := range ph.Targets() {
		if r := p.Target(name).Replication; r != nil {
			replicas = max(replicas, r.N)
		}
	}
	each := multiply(int64(2*replicas), int64(p.LargestValue(ph)))
	return multiply(p.flying(ph, sessions), each)
}

// LargestValue returns the size of the largest value or, with batches, of all values of the largest request, in a phase's datasets.
func (p *Plan) LargestValue(ph *Phase) (bytes int) {
	for _, name := range ph.Datasets() {
		bytes = max(bytes, p.Dataset(name).Values.Size)
	}
	return bytes * max(1, ph.Batch)
}

// MemoryShort says in words that sessions of a phase can need more memory than one worker has available, and how many sessions, or ops in
// flight, would fit; clients are as in [Plan.Memory]. It returns "" when they fit, or when available is 0, for unknown.
func (p *Plan) MemoryShort(ph *Phase, sessions int, clients map[string]int, available int64) string {
	need := p.Memory(ph, sessions, clients)
	if available == 0 || need <= available {
		return ""
	}
	fits := sort.Search(sessions, func(n int) bool { return p.Memory(ph, n+1, clients) > available })
	depth := max(0, available-p.idle(ph, sessions, clients)) / p.opBytes(ph)
	var would []string
	if fits > 0 {
		would = append(would, fmt.Sprintf("%d of the sessions", fits))
	}
	if depth >= int64(sessions) {
		would = append(would, fmt.Sprintf("%d ops in flight", depth))
	}
	if would == nil {
		would = append(would, "no number of sessions")
	}
	return fmt.Sprintf("%d sessions with %d ops in flight can need %d MiB of memory, and %d MiB are available: on one worker %s would do",
		sessions, p.flying(ph, sessions), need>>20, available>>20, strings.Join(would, " or "))
}

// FilesShort says in words that sessions of a phase, with each connections apiece, need more open files than one worker's limit, and how many
// sessions would fit. It returns "" when they fit.
func (ph *Phase) FilesShort(sessions, each int, limit int64) string {
	connections := multiply(int64(sessions), int64(each))
	need := add(connections, spareFiles)
	if need <= limit {
		return ""
	}
	short := fmt.Sprintf("%d connections need about %d open files, and the limit is %d: raise it (ulimit -n %d)", connections, need, limit, need)
	if fits := (limit - spareFiles) / int64(each); fits > 0 {
		short += fmt.Sprintf(", or use at most %d sessions on a worker", fits)
	}
	return short
}

// OpsPerSecond returns the most ops per second that a phase asks for whatever the target does: the highest rate of its schedule, but the
// lowest for a search. It is 0 for a phase without a schedule.
func (ph *Phase) OpsPerSecond() float64 {
	rate := 0.0
	switch {
	case ph.Open != nil:
		rate = ph.Open.Rate
	case ph.Stages != nil:
		for _, s := range ph.Stages.Stages {
			rate = max(rate, s.Rate)
		}
	case ph.Search != nil:
		rate = ph.Search.From
	}
	return rate * ph.StepsPerArrival()
}

// expected returns the expected number of ops due under a rate over time.
func (ph *Phase) expected(s Shape) int64 {
	return scale(1, pace.Shape(s).Expected()*ph.StepsPerArrival())
}

// opsOf returns the number of ops of a phase's load and its duration; each is nil when it depends on the target.
func (p *Plan) opsOf(ph *Phase, d *Dataset) (*int64, *time.Duration) {
	var ops int64
	sessions := int64(ph.Sessions())
	switch {
	case ph.Open != nil:
		ops = ph.expected(ph.Open.Shape())
		return &ops, &ph.Open.Duration
	case ph.Stages != nil:
		var all time.Duration
		for _, s := range ph.Stages.Shapes() {
			ops, all = add(ops, ph.expected(s)), time.Duration(add(int64(all), int64(s.Duration)))
		}
		return &ops, &all
	case ph.Search != nil:
		return nil, &ph.Search.Budget
	case ph.Closed != nil && ph.Closed.Duration > 0 && ph.Closed.Iterations > 0 && ph.Closed.Trace == nil:
		ops = scale(multiply(sessions, ph.Closed.Iterations), ph.StepsPerArrival()) // an upper bound
		return &ops, &ph.Closed.Duration
	case ph.Closed != nil && ph.Closed.Duration > 0:
		return nil, &ph.Closed.Duration
	case ph.Closed != nil && ph.Closed.Trace != nil && ph.Closed.Iterations > 0:
		return nil, nil // how many lines a session gets depends on their keys
	case ph.Closed != nil && ph.Closed.Trace != nil:
		ops = ph.Closed.Trace.Lines
	case ph.Closed != nil && ph.Closed.Iterations > 0:
		ops = multiply(sessions, ph.Closed.Iterations)
	case ph.Clear != nil && p.flushes(ph):
		// one request to each node, which is not an op
	case d.Keys.PerSession() && ph.Clear != nil:
		ops = multiply(int64(p.Pools(ph.Dataset)), d.Keys.Count)
	case d.Keys.PerSession():
		ops = multiply(sessions, d.Keys.Count)
	default:
		ops = d.Keys.Count
	}
	switch rows := d.Rows; {
	case ph.Closed == nil || !rows.Once():
	case ph.Closed.Iterations > 0:
		ops = min(ops, rows.Count)
	default:
		ops = rows.Count
	}
	if ph.Closed != nil {
		ops = scale(ops, ph.StepsPerArrival())
	}
	return &ops, nil
}

// Once returns the number of ops, over all workers, of a step that must succeed as a whole: a phase's setup, or a populate or clear phase.
func (p *Plan) Once(ph *Phase, setup bool) int64 {
	d := p.Dataset(ph.Dataset)
	switch {
	case setup && len(ph.SetupSteps) > 0:
		return multiply(int64(ph.Sessions()), int64(len(ph.SetupSteps)))
	case setup:
		return multiply(int64(ph.Sessions()), d.Keys.Count)
	}
	ops, _ := p.opsOf(ph, d)
	return *ops
}

// Pools returns how many session pools of a dataset the plan's loads use.
func (p *Plan) Pools(dataset string) int {
	n := 0
	for _, ph := range p.Phases {
		if slices.Contains(ph.Datasets(), dataset) && ph.Clear == nil {
			n = max(n, ph.Sessions())
		}
	}
	return n
}

// inFlight returns how many ops of a phase can be in flight.
func inFlight(ph *Phase) int64 {
	if s := ph.Schedule(); s != nil {
		return int64(s.InFlight)
	}
	return multiply(int64(ph.Sessions()), int64(ph.Pipeline()))
}

// fanout returns the mean number of requests per op of a mix.
func fanout(r *Replication, mix []Weight) float64 {
	if r == nil {
		return 1
	}
	requests, weights := 0.0, 0.0
	for _, w := range mix {
		n := r.N
		if w.Op == driver.Get.String() && r.GetsAskR() {
			n = r.R
		}
		requests += w.Weight * float64(n)
		weights += w.Weight
	}
	return requests / weights
}

// scale, multiply and add saturate at the largest int64.
func scale(n int64, by float64) int64 {
	if by == 1 {
		return n // exact
	}
	if f := math.Round(float64(n) * by); f < math.MaxInt64 {
		return int64(f)
	}
	return math.MaxInt64
}

func multiply(a, b int64) int64 {
	if b > 0 && a > math.MaxInt64/b {
		return math.MaxInt64
	}
	return a * b
}

func add(a, b int64) int64 {
	if a > math.MaxInt64-b {
		return math.MaxInt64
	}
	return a + b
}

// sum adds two numbers; the sum is nil, for unknown, if either is.
func sum[T int64 | time.Duration](a, b *T) *T {
	if a == nil || b == nil {
		return nil
	}
	s := T(add(int64(*a), int64(*b)))
	return &s
}
