package command_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/loadgen/loadgen/internal/result/run"
	"github.com/loadgen/loadgen/internal/servertest"
)

// chainsIn returns the text of a trace whose last chains come twice, so that some are whole, and their ids.
func chainsIn(t *testing.T) (text string, ids [][]int) {
	b, err := os.ReadFile(filepath.Join("testdata", "blocks.jsonl"))
	require.NoError(t, err)
	lines := strings.SplitAfter(string(b), "\n")[:300]
	for _, line := range lines[280:] {
		lines = append(lines, strings.Replace(line, regexp.MustCompile(`\d+`).FindString(line), "298000", 1))
	}
	for _, line := range lines {
		var is struct {
			IDs []int `json:"hash_ids"`
		}
		require.NoError(t, json.Unmarshal([]byte(line), &is))
		ids = append(ids, is.IDs)
	}
	return strings.Join(lines, ""), ids
}

// lruOf asks an LRU of blocks for chains, one after another, and puts what is not there: hits, puts, and chains that are whole and that begin with a miss.
func lruOf(room int, chains [][]int) (is [4]uint64) {
	var newest []int
	for _, chain := range chains {
		n := 0
		for ; n < len(chain) && slices.Contains(newest, chain[n]); n++ {
			newest = append(slices.DeleteFunc(newest, func(id int) bool { return id == chain[n] }), chain[n])
		}
		for _, id := range chain[n:] {
			newest = append(slices.DeleteFunc(newest, func(other int) bool { return other == id }), id)
			newest = newest[max(0, len(newest)-room):]
		}
		is[0], is[1] = is[0]+uint64(n), is[1]+uint64(len(chain)-n)
		if n == len(chain) {
			is[2]++
		} else if n == 0 {
			is[3]++
		}
	}
	return is
}

// TestChainsOnAnExactLRU: nodes with an exact LRU of several sizes hit as one by hand, however many gets are under way. The hits and puts of the first
// 300 chains are known from elsewhere.
func TestChainsOnAnExactLRU(t *testing.T) {
	t.Parallel()
	text, chains := chainsIn(t)
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "blocks.jsonl"), []byte(text), 0o600))
	known := map[int][4]uint64{20: {432, 2444, 0, 2}, 50: {656, 2220, 0, 1}, 100: {978, 1898, 0, 1}, 200: {1286, 1590, 0, 1}, 400: {1405, 1471, 0, 1}, 4000: {1405, 1471, 0, 1}}
	src := `plan "chains" {}`
	for room := range known {
		item := max(4, 1280/room) // KiB: a node takes no less than 1 MiB
		src += fmt.Sprintf(`
dataset "d%[1]d" {
	keys { count = 1471 }
	values { size = %[2]d }
}`, room, item<<10-112)
		for _, ahead := range []int{1, 8} {
			name := fmt.Sprintf("r%d_%d", room, ahead)
			src += fmt.Sprintf(`
target %[1]q {
	driver = "redis"
	builtin { memory = "%[2]dKiB" }
}
phase %[1]q {
	target  = target.%[1]s
	dataset = dataset.d%[4]d
	closed {
		chain { ahead = %[3]d }
		trace {
			file = "blocks.jsonl"
			form = "mooncake"
		}
	}
}`, name, room*item, ahead, room)
		}
	}
	r := begin(t, src, "--files", dir).result(60 * time.Second)
	for room, want := range known {
		require.Equal(t, want, lruOf(room, chains[:300]), "%d", room)
		want = lruOf(room, chains)
		for _, ahead := range []int{1, 8} {
			ph := r.Phase[fmt.Sprintf("r%d_%d", room, ahead)]
			c, put := ph.Op["chain"], ph.Op["put"]
			is := [4]uint64{c.Keys.OK, put.Keys.OK, c.Kind["whole"].Response.Count, c.Kind["none"].Response.Count}
			require.Equal(t, want, is, "room for %d, %d ahead", room, ahead)
			require.NotContains(t, strings.Join(ph.Notes, "\n"), "clock")
			require.EqualValues(t, []uint64{320, want[3], want[1], 320 - want[2]}, []uint64{c.Due, c.Miss, c.Keys.Miss, put.OK})
		}
	}
}

// TestWastedGets: a real server that evicts has hit as often as loadgen says, by the keys that were there behind a gap; they hold what was put.
func TestWastedGets(t *testing.T) {
	t.Parallel()
	addr, dir := servertest.Redis(t, "--maxmemory", "3mb", "--maxmemory-policy", "allkeys-lru"), t.TempDir()
	text, chains := chainsIn(t)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "blocks.jsonl"), []byte(text), 0o600))
	hits := func() (n uint64) {
		return numberIn(t, regexp.MustCompile(`keyspace_hits:(\d+)`).FindStringSubmatch(ask(t, addr, "INFO", "stats"))[1])
	}
	keys := uint64(0)
	for _, c := range chains {
		keys += uint64(len(c))
	}
	const plan = `plan "wasted" {}
variable "endpoints" { type = list(string) }` + redisT + `
dataset "d" {
	keys { count = 1471 }
	values {
		size    = 4000
		checked = true
	}
}
phase "load" {
	target  = target.t
	dataset = dataset.d
	%s {
		sessions = 3
		chain { %s }
		trace {
			file = "blocks.jsonl"
			form = "mooncake"
			%s
		}
	}
}
phase "clear" {
	target  = target.t
	dataset = dataset.d
	clear {}
}
assert "figures" {
	that = phase.load.op.chain.hit_ratio < 1 && phase.load.op.chain.keys.wasted > 0
}`
	for _, load := range [][3]string{{"closed"}, {"open", "ahead = 3", "speed = 400"}, {"open", "spread = true", "speed = 400"}} {
		before := hits()
		r := begin(t, fmt.Sprintf(plan, load[0], load[1], load[2]), "--files", dir, "-var", nodes(addr)).result(60 * time.Second)
		ph := r.Phase["load"]
		c := ph.Op["chain"]
		require.Equal(t, []uint64{320, keys, keys}, []uint64{c.OK + c.Miss, c.Keys.Due, c.Keys.OK + c.Keys.Miss}, "%v", load)
		require.Equal(t, c.Keys.Miss, ph.Op["put"].Keys.OK)
		require.Equal(t, hits()-before, c.Keys.OK+*c.Keys.Wasted)
		require.NotZero(t, *c.Keys.Wasted)
		require.Zero(t, ph.Foreign+ph.Misplaced)
		require.Equal(t, run.Pass, r.Verdict.Assertions, r.Asserts)
		require.Regexp(t, `evicted \S+ keys, on average \S+ m?s after they came: its LRU clock counts seconds`, strings.Join(ph.Notes, "\n"))
		require.Equal(t, load[0] == "open" && load[1] == "ahead = 3", strings.Contains(strings.Join(ph.Notes, "\n"), "have the same time"))
		require.Zero(t, number(t, addr, "DBSIZE"))
	}
}
