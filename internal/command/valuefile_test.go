package command_test

import (
	"encoding/base64"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/loadgen/loadgen/internal/servertest"
)

// importPlan puts each row of a file under its key, and then works on the keys with every op that puts.
const importPlan = `plan "import" {}
variable "driver" {}
variable "endpoints" { type = list(string) }
target "t" {
	driver    = var.driver
	endpoints = var.endpoints
}
dataset "rows" {
	keys {
		file = "rows.csv"
		form = "csv"
	}
	values {
		file     = "rows.csv"
		form     = "csv"
		encoding = "base64"
		pick     = "key"
	}
}
dataset "checked" {
	keys { count = 200 }
	values {
		file     = "rows.csv"
		form     = "csv"
		encoding = "base64"
		checked  = true
	}
}
dataset "brief" {
	keys {
		count  = 10
		format = "brief:%d"
	}
	values {
		file     = "rows.csv"
		form     = "csv"
		encoding = "base64"
		ttl      = "60s"
	}
}
phase "fill" {
	target  = target.t
	dataset = dataset.rows
	populate {}
}
phase "batches" {
	target  = target.t
	dataset = dataset.rows
	ops     = { get = 1, put = 1 }
	batch   = 8
	closed {
		sessions   = 4
		iterations = 100
	}
}
phase "scenes" {
	target  = target.t
	dataset = dataset.rows
	scenario "change" {
		step "get" {}
		step "put" { key = "same" }
	}
	open {
		rate     = 1000
		duration = "300ms"
	}
}
phase "fill_checked" {
	target  = target.t
	dataset = dataset.checked
	populate {}
}
phase "checked" {
	target  = target.t
	dataset = dataset.checked
	ops     = { get = 1, put = 1 }
	closed {
		sessions   = 4
		iterations = 100
	}
}
phase "brief" {
	target  = target.t
	dataset = dataset.brief
	ops     = { put = 1 }
	closed { iterations = 100 }
}
`

// rows writes n keys with values of any bytes, up to 83 kB long, and returns the values by key.
func rows(t *testing.T, dir string, n int) map[string]string {
	var b strings.Builder
	b.WriteString("key,name,value\r\n")
	values := map[string]string{}
	for i := range n {
		key, value := fmt.Sprintf("row:%d", i), strings.Repeat(fmt.Sprintf("%d\x00\xff\r\n", i), i*100)
		values[key] = value
		fmt.Fprintf(&b, "%s,\"a, b\",%s\r\n", key, base64.StdEncoding.EncodeToString([]byte(value)))
	}
	require.NoError(t, os.WriteFile(filepath.Join(dir, "rows.csv"), []byte(b.String()), 0o600))
	return values
}

// A server has the file's row under each key, byte for byte, whichever op has put it, and however many workers there are.
func TestRowsOfAFileOnServers(t *testing.T) {
	t.Parallel()
	const n = 120
	t.Run("redis, two workers", func(t *testing.T) {
		addr, dir := servertest.Redis(t), t.TempDir()
		values := rows(t, dir, n)
		begin := func(args ...string) *load {
			return begin(t, importPlan, append(args, "--files", dir, "-var", "driver=redis", "-var", nodes(addr))...)
		}
		tm := invite(t, 2, begin)
		tm.join(tm.addr, "--files", dir)
		tm.join(tm.addr, "--files", dir)
		r := tm.result(60 * time.Second)
		for _, name := range []string{"fill", "batches", "scenes", "fill_checked", "checked", "brief"} {
			for verb, o := range r.Phase[name].Op {
				require.Equal(t, o.Due, o.OK, "%s %s", name, verb)
			}
			require.Zero(t, r.Phase[name].Foreign, name)
			require.EqualValues(t, n, r.Phase[name].Dataset.ValuesFile.Values)
		}
		require.EqualValues(t, 3200, r.Phase["batches"].Op["get"].Keys.OK+r.Phase["batches"].Op["put"].Keys.OK)
		require.Equal(t, n+200+10, number(t, addr, "DBSIZE"))
		for key, want := range values {
			require.Equal(t, want, ask(t, addr, "GET", key), key)
		}
		require.Positive(t, number(t, addr, "PTTL", "brief:3"))
	})
	t.Run("memcached", func(t *testing.T) {
		addr, dir := servertest.Memcached(t), t.TempDir()
		rows(t, dir, n)
		r := begin(t, importPlan, "--files", dir, "-var", "driver=memcached", "-var", nodes(addr)).result(60 * time.Second)
		require.EqualValues(t, n, r.Phase["fill"].Op["put"].OK)
		require.EqualValues(t, 400, r.Phase["checked"].Op["get"].OK+r.Phase["checked"].Op["put"].OK)
		require.Zero(t, r.Phase["checked"].Foreign)
		require.EqualValues(t, n+200+10, numberIn(t, memcachedStats(t, addr)["curr_items"]))
	})
}
