package measure

import (
	"encoding"
	"encoding/hex"
	"flag"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/loadgen/loadgen/pkg/driver"
)

var (
	_ encoding.BinaryAppender = (*Totals)(nil)
	_ encoding.BinaryAppender = (*Counters)(nil)
	_ encoding.BinaryAppender = (*Snapshot)(nil)
)

var update = flag.Bool("update", false, "rewrite the golden files in testdata")

// TestBinaryForm pins the form: a newer build of the same version must read what an older one wrote.
func TestBinaryForm(t *testing.T) {
	var got strings.Builder
	for b := bytesOf(t, sampleSnapshot()); len(b) > 0; b = b[min(len(b), 32):] {
		got.WriteString(hex.EncodeToString(b[:min(len(b), 32)]) + "\n")
	}
	path := filepath.Join("testdata", "snapshot.hex")
	if *update {
		require.NoError(t, os.WriteFile(path, []byte(got.String()), 0o644))
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, string(want), got.String())
}

func TestEmptyForms(t *testing.T) {
	for _, c := range []struct {
		name string
		x    interface {
			AppendBinary([]byte) ([]byte, error)
		}
		want string
	}{
		{"counters", new(Counters), "0e" + "00" + "0000"},
		{"totals", new(Totals), "0e" + "00" + "0000000000000000" + "000000000000" + "00" + "00" + "0000" + "0000" + "00" + "00" + "00" + "00" + "00" + "0200" + "00" + "00" + "00"},
	} {
		require.Equal(t, c.want, hex.EncodeToString(bytesOf(t, c.x)), c.name)
	}
}

func drawSnapshot(t *rapid.T) *Snapshot {
	s := &Snapshot{
		Step:     rapid.IntRange(0, math.MaxInt32).Draw(t, "step"),
		SeqFirst: rapid.Uint64().Draw(t, "first"),
		From:     rapid.Int64().Draw(t, "from"),
		Final:    rapid.Bool().Draw(t, "final"),
		Delta:    *drawTotals(t),
	}
	d := NewDraw(5, rapid.Uint64().Draw(t, "seed"), 1)
	for range rapid.IntRange(0, 8).Draw(t, "drawn") {
		d.Enter(&DrawnOp{Due: s.From, Start: s.From, End: s.From, Verb: driver.Put, Outcome: driver.Error}, []byte("x"), 1)
	}
	s.Samples.Add(d.most, d.Taken())
	s.SeqLast = rapid.Uint64Min(s.SeqFirst).Draw(t, "last")
	s.To = rapid.Int64Min(s.From).Draw(t, "to")
	s.Running.Add(&s.Delta)
	return s
}

func TestDecodeIsTheInverse(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := drawSnapshot(t)
		b := bytesOf(t, s)
		tail := rapid.SliceOfN(rapid.Byte(), 0, 5).Draw(t, "tail")
		into := drawSnapshot(t)
		rest, err := into.Decode(append(b[:len(b):len(b)], tail...))
		require.NoError(t, err)
		require.Equal(t, len(tail), len(rest))
		require.Equal(t, b, bytesOf(t, into))
		require.Equal(t, [...]any{s.Step, s.SeqFirst, s.SeqLast, s.From, s.To, s.Final},
			[...]any{into.Step, into.SeqFirst, into.SeqLast, into.From, into.To, into.Final})
		require.Equal(t, s.Delta.Requests, into.Delta.Requests)
		require.Equal(t, s.Delta.Errors, into.Delta.Errors)
		require.Equal(t, s.Delta.Span, into.Delta.Span)
		require.True(t, s.Running.Equal(&into.Running))
		for v, o := range s.Delta.Ops {
			require.Equal(t, o.Ledger(), into.Delta.Ops[v].Ledger())
		}
		require.NoError(t, into.CheckValid())
	})
}

func TestDecodeIntoNewMakesNoEmptyOps(t *testing.T) {
	totals := count(start(driver.Put, 1))
	var into Totals
	_, err := into.Decode(bytesOf(t, totals))
	require.NoError(t, err)
	require.Nil(t, into.Ops[driver.Get])
	require.NotNil(t, into.Ops[driver.Put])
	require.Nil(t, into.Ops[driver.Put].Bins[driver.OK])
}

func TestDecodeReusesMemory(t *testing.T) {
	b := bytesOf(t, sampleSnapshot())
	var into Snapshot
	require.Zero(t, testing.AllocsPerRun(20, func() {
		if _, err := into.Decode(b); err != nil {
			panic(err)
		}
	}))
}

// A longer prefix takes longer, so of those beyond 300 bytes it tries fewer and fewer.
func TestDecodeOfEveryPrefixFails(t *testing.T) {
	b := bytesOf(t, sampleSnapshot())
	empty := bytesOf(t, new(Snapshot))
	var s Snapshot
	for n := 0; n < len(b); n += 1 + n/300 {
		rest, err := s.Decode(b[:n])
		require.ErrorContains(t, err, "it ends early", "%d bytes of %d", n, len(b))
		require.Nil(t, rest)
		require.Equal(t, empty, bytesOf(t, &s), "empty after an error")
	}
}

func TestEncodeRefusesWhatCannotBeRead(t *testing.T) {
	for _, c := range []struct {
		name string
		s    *Snapshot
		want string
	}{
		{"too many endpoints", &Snapshot{Delta: *NewTotals(0, maxEndpoints+1)}, "want a multiple of 39, of at most 4096 endpoints"},
		{"half an endpoint", &Snapshot{Running: Counters{Requests: make([]Requests, 4)}}, "encode 4 request ledgers"},
		{"sequence backwards", &Snapshot{SeqFirst: 2, SeqLast: 1}, "want neither to run backwards"},
		{"time backwards", &Snapshot{From: 2, To: 1}, "want neither to run backwards"},
		{"negative step", &Snapshot{Step: -1}, "of step -1"},
		{"too large a step", &Snapshot{Step: math.MaxInt32 + 1}, "of step 2147483648"},
		{
			"too many acks", func() *Snapshot {
				var s Snapshot
				s.Delta.Ack(driver.Put, MaxAcks+1, 1)
				return &s
			}(), "encode put: 256 acks, want at most 255",
		},
		{
			"too many kinds", func() *Snapshot {
				var s Snapshot
				s.Delta.of(driver.Put).kind(MaxKinds + 1).Response.Record(1)
				return &s
			}(), "encode put: 9 kinds, want at most 8",
		},
		{
			"too many steps", func() *Snapshot {
				var s Snapshot
				s.Delta.AddStep(Step{2, MaxSteps})
				return &s
			}(), "encode scenario 3: 65 steps, want at most 64",
		},
		{
			"too many acks of a step", func() *Snapshot {
				var s Snapshot
				lengthen(&s.Delta.step(Step{0, 1}).Acks, MaxAcks+1)
				s.Delta.step(Step{0, 1}).Acks[MaxAcks].Record(1)
				return &s
			}(), "encode scenario 1: step 2: 256 acks, want at most 255",
		},
	} {
		for range 2 {
			_, err := c.s.AppendBinary(nil)
			require.ErrorContains(t, err, c.want, c.name)
			c.s.Samples.Add(1, []DrawnOp{{}}) // they come last
		}
	}
}

// The most endpoints, acks, kinds, steps, bins of ordinals and error texts survive encoding and decoding, as does the last possible end.
func TestTheMostThatThereCanBeTravels(t *testing.T) {
	for name, change := range map[string]func(t *Totals){
		"endpoints": func(t *Totals) { t.Merge(NewTotals(testOrigin, maxEndpoints)) },
		"away":      func(t *Totals) { t.AddAway(maxEndpoints-1, 1) },
		"acks":      func(t *Totals) { t.Ack(driver.Put, MaxAcks, 1) },
		"kinds":     func(t *Totals) { t.of(driver.Put).kind(MaxKinds).Response.Record(1) },
		"steps":     func(t *Totals) { t.AddStep(Step{MaxScenarios - 1, MaxSteps - 1}) },
		"ordinals":  func(t *Totals) { t.Grow(&Sample{Verb: driver.Put}, math.MaxUint64) },
		"the end":   func(t *Totals) { t.Record(&Sample{Verb: driver.Put, End: math.MaxInt64}) },
		"texts":     func(t *Totals) { addTexts(t, maxTexts) },
		"no text":   func(t *Totals) { addTexts(t, maxTexts+1) }, // the last has displaced all others
	} {
		totals := NewTotals(testOrigin, 1)
		change(totals)
		var into Totals
		rest, err := into.Decode(bytesOf(t, totals))
		require.NoError(t, err, name)
		require.Empty(t, rest, name)
		require.Equal(t, bytesOf(t, totals), bytesOf(t, &into), name)
	}
}

func addTexts(t *Totals, n int) {
	for i := range n {
		t.Errors.Add(fmt.Appendf(nil, "error %02d", i))
	}
}

// Each case is a form that AppendBinary does not write.
func TestDecodeIsStrict(t *testing.T) {
	bare := strings.TrimSuffix(hex.EncodeToString(bytesOf(t, new(Totals))), "00") // up to what was compared
	const (
		head   = "0e" + "00" + "0000000000000000" + "000000000000" + "00" // up to the span
		span   = "00"
		noErrs = "0000"
		noReqs = "0000" + "00" // and no times away
		zeros8 = "0000000000000000"
		ledger = "01" + "00000000000000" + "02" // one due, in flight
		// An op up to its acks: ledger, causes, bytes, lag, service, response.
		upToAcks = ledger + "0000000000" + "0000" + "0200" + "020002000200" + "020002000200"
		putOp    = "02" + upToAcks
		emptyOp  = "000000000000000000" + "0000000000" + "0000" + "0200" + "020002000200" + "020002000200" + "0000000000"
		second   = head + span + noErrs + noReqs + "00" + "02" + upToAcks + "0000000000" // the second scenario, up to its steps
	)
	for _, c := range []struct{ name, form, want string }{
		{"version", "01", "version 1, want 14"},
		{"a long number", "0e" + "8000", "longer than need be"},
		{"a large number", "0e" + "ffffffffffffffffffff01", "above 2^64"},
		{"32 errors without text", head + span + "2000", "32 errors without a text"},
		{"33 texts", head + span + "2121", "33 error texts, want at most 32"},
		{"errors without text", head + span + "0100", "1 errors without a text"},
		{"text never occurred", head + span + "0101" + "0161" + "00", "occurred 0 times, want 1 to 1"},
		{"text too often", head + span + "0101" + "0161" + "02", "occurred 2 times, want 1 to 1"},
		{"text not escaped", head + span + "0101" + "010a" + "01", "too long or not escaped"},
		{"text cut in a rune", head + span + "0101" + "01c3" + "01", "too long or not escaped"},
		{"text too long", head + span + "0101" + "79" + strings.Repeat("61", 121) + "01", "too long or not escaped"},
		{"texts descend", head + span + "0202" + "016201" + "016101", "error texts out of order"},
		{"text twice", head + span + "0202" + "016101" + "016101", "error texts out of order"},
		{"endpoints", head + span + noErrs + "812000", "0 request ledgers of 4097 endpoints"},
		{"2^63 endpoints", head + span + noErrs + "80808080808080808001" + "00", "0 request ledgers of 9223372036854775808 endpoints"},
		{"2^63 endpoints in use", head + span + noErrs + "80808080808080808001" + "01", "1 request ledgers of 9223372036854775808 endpoints"},
		{"requests", head + span + noErrs + "0128", "40 request ledgers of 1 endpoints"},
		{"requests beyond", head + span + noErrs + "0101" + "27", "beyond the 1 endpoints"},
		{"requests after the last", head + span + noErrs + "0102" + "260100000000000000" + "00", "beyond the 1 endpoints"},
		{"empty requests", head + span + noErrs + "0101" + "00" + zeros8, "a request ledger that is written, but empty"},
		{"times away of too many", head + span + noErrs + "0000" + "8120", "4097 times away, want at most 4096"},
		{"last time away is none", head + span + noErrs + "0000" + "020100", "the last of 2 times away is empty"},
		{"verbs", head + span + noErrs + noReqs + "808080808010", "a set 0x8000000000 of 39 verbs"},
		{"empty op", head + span + noErrs + noReqs + "02" + emptyOp, "decode totals: put: written, but empty"},
		{"histogram", head + span + noErrs + noReqs + "02" + ledger + "0000000000" + "0000" + "0100", "put: decode histogram: version 1"},
		{"last ack empty", head + span + noErrs + noReqs + putOp + "01" + "0200", "put: the last of 1 acks is empty"},
		{"nine kinds", head + span + noErrs + noReqs + putOp + "00" + "09", "put: 9 kinds, want at most 8"},
		{"last kind empty", head + span + noErrs + noReqs + putOp + "00" + "01" + "0200" + "0200", "put: the last of 1 kinds is empty"},
		{"outcomes", head + span + noErrs + noReqs + putOp + "00" + "00" + "80", "put: a set 0x80 of 7 outcomes"},
		{"bins too fine", head + span + noErrs + noReqs + putOp + "00" + "00" + "01" + "0f01", "put: 1 ends in bins of 2^15 ns"},
		{"bins too coarse", head + span + noErrs + noReqs + putOp + "00" + "00" + "01" + "3601", "put: 1 ends in bins of 2^54 ns"},
		{"empty bins", head + span + noErrs + noReqs + putOp + "00" + "00" + "01" + "1000", "put: 0 ends in bins"},
		{"empty bin", head + span + noErrs + noReqs + putOp + "00" + "00" + "01" + "1001" + "0000", "put: a bin of 0 ends, want 1 to 1"},
		{"full bin", head + span + noErrs + noReqs + putOp + "00" + "00" + "01" + "1001" + "0002", "put: a bin of 2 ends, want 1 to 1"},
		{"bin beyond", head + span + noErrs + noReqs + putOp + "00" + "00" + "01" + "1001" + "800801", "put: a bin above the last of 1024"},
		{"bin after the last", head + span + noErrs + noReqs + putOp + "00" + "00" + "01" + "1002" + "ff0701" + "0001", "put: a bin above the last"},
		{"bins coarser than need be", head + span + noErrs + noReqs + putOp + "00" + "00" + "01" + "1101" + "ff0301", "put: bins of 2^17 ns, where half"},
		{"rare things", head + span + noErrs + noReqs + putOp + "00" + "00" + "00" + "00" + "40", "put: a set 0x40 of 6 kinds"},
		{"many stages", head + span + noErrs + noReqs + putOp + "00" + "00" + "00" + "00" + "10" + "ea07", "put: 1002 stages, want at most 1001"},
		{"last stage empty", head + span + noErrs + noReqs + putOp + "00" + "00" + "00" + "00" + "10" + "0201" + emptyOp, "put: stages 2 to 2, the first or the last"},
		{"no stage", head + span + noErrs + noReqs + putOp + "00" + "00" + "00" + "00" + "10" + "0000", "put: stages 1 to 0, the first or the last"},
		{"stages of a scenario", head + span + noErrs + noReqs + "00" + "01" + emptyOp[:len(emptyOp)-2] + "10", "scenario 1: stages of what is no verb"},
		{"no checks", head + span + noErrs + noReqs + putOp + "00" + "00" + "00" + "00" + "08" + "00", "put: 0 checks, the last of which never failed"},
		{"last check empty", head + span + noErrs + noReqs + putOp + "00" + "00" + "00" + "00" + "08" + "020100", "put: 2 checks, the last of which never failed"},
		{"many checks", head + span + noErrs + noReqs + putOp + "00" + "00" + "00" + "00" + "08" + "21", "put: 33 checks, want at most 32"},
		{"empty parts", head + span + noErrs + noReqs + putOp + "00" + "00" + "00" + "00" + "04" + "0200" + "0200", "put: parts of service times that are written, but empty"},
		{"parts cut off", head + span + noErrs + noReqs + putOp + "00" + "00" + "00" + "00" + "04" + "0200", "decode totals: put: decode histogram: it ends early"},
		{"no bins of ordinals", head + span + noErrs + noReqs + putOp + "00" + "00" + "00" + "00" + "02" + "0000", "put: 0 bins of 2^0 ordinals"},
		{"too many bins of ordinals", head + span + noErrs + noReqs + putOp + "00" + "00" + "00" + "00" + "02" + "0081", "put: 129 bins of 2^0 ordinals"},
		{"bins of ordinals too wide", head + span + noErrs + noReqs + putOp + "00" + "00" + "00" + "00" + "02" + "0140", "put: 64 bins of 2^1 ordinals"},
		{"bins of ordinals beyond", head + span + noErrs + noReqs + putOp + "00" + "00" + "00" + "00" + "02" + "3a41", "put: 65 bins of 2^58 ordinals"},
		{"last bin of ordinals empty", head + span + noErrs + noReqs + putOp + "00" + "00" + "00" + "00" + "02" + "0001" + "00" + "0200", "put: the last of 1 bins of ordinals is empty"},
		{"bins of ordinals cut off", head + span + noErrs + noReqs + putOp + "00" + "00" + "00" + "00" + "02" + "0003" + "00" + "0200", "decode totals: put: it ends early"},
		{"two ops, the first cut off", head + span + noErrs + noReqs + "06" + ledger, "decode totals: put: it ends early"},
		{"empty keys", head + span + noErrs + noReqs + putOp + "00" + "00" + "00" + "00" + "01" + "000000000000000000" + "0000", "decode totals: put: a ledger of keys that is written, but empty"},
		{"kinds cut off", head + span + noErrs + noReqs + putOp + "00" + "02" + "0200", "decode totals: put: decode histogram: it ends early"},
		{"acks cut off", head + span + noErrs + noReqs + putOp + "02" + "0200", "decode totals: put: decode histogram: it ends early"},
		{"outcomes by turn", head + span + noErrs + noReqs + putOp + "00" + "00" + "00" + "80", "put: a set 0x80 of 7 outcomes"},
		{"time too fine", head + span + noErrs + noReqs + "00" + "00" + "0f01", "1 ends in bins of 2^15 ns"},
		{"empty time", head + span + noErrs + noReqs + "00" + "00" + "1000", "0 ends in bins of 2^16 ns"},
		{"scenarios", head + span + noErrs + noReqs + "00" + "8080808010", "a set 0x100000000 of 32 scenarios"},
		{"scenario cut off", head + span + noErrs + noReqs + "00" + "02" + "01", "scenario 2: it ends early"},
		{"empty scenario", head + span + noErrs + noReqs + "00" + "01" + emptyOp + "00", "decode totals: scenario 1: written, but empty"},
		{"first step cut off", second + "01" + "01", "decode totals: scenario 2: step 1: it ends early"},
		{"step cut off", second + "04" + "01", "decode totals: scenario 2: step 3: it ends early"},
		{"empty first step", second + "01" + emptyOp, "decode totals: scenario 2: step 1: written, but empty"},
		{"empty step", second + "04" + emptyOp, "decode totals: scenario 2: step 3: written, but empty"},
		{"rare", bare + "04", "a set 0x4 of 2 kinds of what few steps have"},
		{"empty connections", bare + "02" + "0000000000000000" + strings.Repeat("0200", NumStages), "connections: written, but empty"},
		{"empty versions", bare + "01" + "000000000000000000000000" + "0200" + "00", "versions: written, but empty"},
		{"many lost writes", bare + "01" + "000000000000000000000000" + "0200" + "11", "17 examples of lost writes, want at most 16"},
		{"a long key", bare + "01" + "000000000000000000000000" + "0200" + "01" + "00" + "fb", "251 bytes of a lost key, want at most 250"},
		{"lost writes out of order", bare + "01" + "000000000000000000000000" + "0200" + "02" + "02" + "00" + "0500" + "04" + "00" + "0500", "versions: examples out of order"},
	} {
		t.Run(c.name, func(t *testing.T) {
			b, err := hex.DecodeString(c.form)
			require.NoError(t, err)
			for _, into := range []*Totals{sampleTotals(), new(Totals)} {
				_, err = into.Decode(b)
				require.Equal(t, bytesOf(t, new(Totals)), bytesOf(t, into), "empty after an error")
				require.ErrorContains(t, err, "decode totals: ")
				require.ErrorContains(t, err, c.want)
			}
		})
	}
	for _, c := range []struct{ name, form, want string }{
		{"version", "00", "version 0, want 14"},
		{"verbs", "0e808080808010", "a set 0x8000000000 of 39 verbs"},
		{"empty ledger", "0e02" + "000000000000000000", "put: written, but empty"},
	} {
		t.Run("counters/"+c.name, func(t *testing.T) {
			b, err := hex.DecodeString(c.form)
			require.NoError(t, err)
			into := sampleTotals().Counters()
			_, err = into.Decode(b)
			require.True(t, into.Equal(new(Counters)), "empty after an error")
			require.ErrorContains(t, err, "decode counters: ")
			require.ErrorContains(t, err, c.want)
		})
	}
	const most = "ffffffffffffffffff01"
	for _, c := range []struct{ name, form, want string }{
		{"version", "07", "version 7, want 14"},
		{"step", "0e" + "8080808008", "step 2147483648"},
		{"sequence", "0e" + "00" + most + "01", "sequence numbers above 2^64"},
		{"time", "0e" + "00" + "0000" + "02" + most, "an interval to beyond 2^63 ns"},
		{"what it has", "0e" + "00" + "0000" + "0000" + "04", "a set 0x4 of 2 things said of a snapshot"},
	} {
		t.Run("snapshot/"+c.name, func(t *testing.T) {
			b, err := hex.DecodeString(c.form)
			require.NoError(t, err)
			into := sampleSnapshot()
			_, err = into.Decode(b)
			require.Equal(t, bytesOf(t, new(Snapshot)), bytesOf(t, into), "empty after an error")
			require.ErrorContains(t, err, "decode snapshot: ")
			require.ErrorContains(t, err, c.want)
		})
	}
}

// oneForm requires that there is one form for one state, besides the previous.
func oneForm(t *testing.T, read, written []byte) {
	t.Helper()
	if read[0] == version {
		require.Equal(t, read, written)
	}
}

// Totals of the previous form have none of the counts that came since.
func TestTotalsOfThePreviousForm(t *testing.T) {
	want := sampleTotals()
	want.Misplaced, want.AnotherRun = 0, 0
	b := bytesOf(t, want)
	bare := NewTotals(want.Origin, 0)
	bare.Digest, bare.Reconnects, bare.LateReplies, bare.Foreign = want.Digest, want.Reconnects, want.LateReplies, want.Foreign
	at := len(bytesOf(t, bare)) - len(bytesOf(t, &Totals{})) + 1 + 1 + 8 + 3 // what precedes them takes more where numbers are large
	require.Equal(t, []byte{0, 0}, b[at:at+2])
	old := slices.Delete(b, at, at+2)
	old[0] = previous
	var got Totals
	rest, err := got.Decode(old)
	require.NoError(t, err)
	require.Empty(t, rest)
	require.Equal(t, bytesOf(t, want), bytesOf(t, &got))
}

func FuzzDecodeTotals(f *testing.F) {
	for _, t := range []*Totals{new(Totals), NewTotals(1, 2), sampleTotals(), count(start(driver.Put, 1))} {
		f.Add(bytesOf(f, t))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		var into Totals
		rest, err := into.Decode(b)
		if err != nil {
			require.Equal(t, bytesOf(t, new(Totals)), bytesOf(t, &into))
			return
		}
		oneForm(t, b[:len(b)-len(rest)], bytesOf(t, &into))
		twice := merged(&into, &into)
		require.Equal(t, 2*into.Digest, twice.Digest)
		if valid := into.CheckValid(); valid != nil {
			require.NotEmpty(t, valid.Error())
		}
	})
}

func FuzzDecodeCounters(f *testing.F) {
	c := sampleTotals().Counters()
	f.Add(bytesOf(f, &c))
	f.Add(bytesOf(f, new(Counters)))
	f.Fuzz(func(t *testing.T, b []byte) {
		var into Counters
		rest, err := into.Decode(b)
		if err != nil {
			require.True(t, into.Equal(new(Counters)))
			return
		}
		oneForm(t, b[:len(b)-len(rest)], bytesOf(t, &into))
	})
}

func FuzzDecodeSnapshot(f *testing.F) {
	f.Add(bytesOf(f, sampleSnapshot()))
	f.Add(bytesOf(f, new(Snapshot)))
	f.Fuzz(func(t *testing.T, b []byte) {
		var into Snapshot
		rest, err := into.Decode(b)
		if err != nil {
			require.Equal(t, bytesOf(t, new(Snapshot)), bytesOf(t, &into))
			return
		}
		oneForm(t, b[:len(b)-len(rest)], bytesOf(t, &into))
	})
}

// Counts of caches from before some of them were counted as unavailable can still be read.
func TestCachesOfAnOlderBuild(t *testing.T) {
	want := Cache{Gets: 5, Hits: 4, Misses: 1, Loads: 1, Caches: 2, MostLoads: 1, Entries: 3, Bytes: 300}
	var writes form
	writes.cache(&want)
	old := slices.Delete(writes.out, 13, 14) // what Unavailable takes
	old[0] = 1
	r := reading(old)
	var got Cache
	r.cache(&got)
	require.NoError(t, r.Err)
	require.Empty(t, r.Rest)
	require.Equal(t, want, got)
}
