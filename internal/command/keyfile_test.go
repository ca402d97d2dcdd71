package command_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/loadgen/loadgen/internal/servertest"
)

const keyFilePlan = `plan "keyfile" {}
variable "driver" {}
variable "form" {}
variable "endpoints" { type = list(string) }
target "t" {
	driver    = var.driver
	endpoints = var.endpoints
}
dataset "d" {
	keys {
		file = "keys.${var.form}"
		form = var.form
		pick = "zipf(0.99)"
	}
	values {
		size    = 100
		checked = true
	}
}` + fillD + `
phase "closed" {
	target  = target.t
	dataset = dataset.d
	ops     = { get = 1 }
	closed {
		sessions   = 8
		iterations = 500
	}
}
phase "open" {
	target  = target.t
	dataset = dataset.d
	ops     = { get = 9, put = 1 }
	open {
		rate     = 1000
		duration = "1s"
	}
}
`

// keyFile writes n keys in a form and returns them.
func keyFile(t *testing.T, dir, form string, n int) (keys []string) {
	var b strings.Builder
	if form == "csv" {
		b.WriteString("name,key\n")
	}
	for i := range n {
		key := fmt.Sprintf("user:%d:%s", i, strings.Repeat("x", i%200))
		keys = append(keys, key)
		switch form {
		case "lines":
			fmt.Fprintln(&b, key)
		case "csv":
			fmt.Fprintf(&b, "\"Doe, \"\"J\"\" %d\",%q\n", i, key)
		case "json":
			fmt.Fprintf(&b, "{\"id\":%d,\"key\":%q}\n", i, key)
		}
	}
	require.NoError(t, os.WriteFile(filepath.Join(dir, "keys."+form), []byte(b.String()), 0o600))
	return keys
}

// Real servers get requests for the keys of a file, each present once after filling, whatever the format and the number of workers.
func TestKeysOfAFileOnServers(t *testing.T) {
	t.Parallel()
	for _, form := range []string{"lines", "csv", "json"} {
		t.Run(form, func(t *testing.T) {
			addr := servertest.Redis(t)
			dir := t.TempDir()
			keys := keyFile(t, dir, form, 300)
			begin := func(args ...string) *load {
				return begin(t, keyFilePlan, append(args, "--files", dir, "-var", "driver=redis", "-var", "form="+form, "-var", nodes(addr))...)
			}
			tm := invite(t, 2, begin)
			tm.join(tm.addr, "--files", dir)
			tm.join(tm.addr, "--files", dir)
			r := tm.result(60 * time.Second)
			require.EqualValues(t, 300, r.Phase["fill"].Op["put"].OK)
			require.EqualValues(t, 4000, r.Phase["closed"].Op["get"].OK)
			open := r.Phase["open"].Op
			require.EqualValues(t, 1000, open["get"].OK+open["put"].OK)
			require.Zero(t, r.Phase["closed"].Foreign+r.Phase["open"].Foreign)
			require.Equal(t, form, r.Phase["closed"].Dataset.File.Form)
			require.Equal(t, 300, number(t, addr, "DBSIZE"))
			require.Equal(t, 300, number(t, addr, append([]string{"EXISTS"}, keys...)...))
		})
	}
	addr := servertest.Memcached(t)
	dir := t.TempDir()
	keyFile(t, dir, "lines", 300)
	r := begin(t, keyFilePlan, "--files", dir, "-var", "driver=memcached", "-var", "form=lines", "-var", nodes(addr)).result(60 * time.Second)
	require.EqualValues(t, 4000, r.Phase["closed"].Op["get"].OK)
	require.EqualValues(t, 300, numberIn(t, memcachedStats(t, addr)["curr_items"]))
}

// A trace of JSON objects is sent to a real server line by line.
func TestTraceOfObjectsOnAServer(t *testing.T) {
	t.Parallel()
	addr := servertest.Redis(t)
	dir := t.TempDir()
	var b strings.Builder
	for i := range 500 {
		fmt.Fprintf(&b, "{\"time\":%d.%03d,\"op\":\"set\",\"key\":\"user:%d\",\"size\":%d,\"who\":{\"op\":[1]}}\n", 1700000000+i/1000, i%1000, i%50, i)
		fmt.Fprintf(&b, "{\"key\":\"user\\u003a%d\",\"op\":\"get\",\"time\":%d.%03d}\n", i%50, 1700000000+i/1000, i%1000)
	}
	require.NoError(t, os.WriteFile(filepath.Join(dir, "ops.json"), []byte(b.String()), 0o600))
	r := begin(t, `plan "objects" {}
variable "endpoints" { type = list(string) }`+redisT+`
dataset "d" {
	keys { count = 1 }
	values { size = 10 }
}
phase "replay" {
	target  = target.t
	dataset = dataset.d
	open {
		trace {
			file = "ops.json"
			form = "json"
		}
		pipeline = 16
	}
}
`, "--files", dir, "-var", nodes(addr)).result(60 * time.Second)
	op := r.Phase["replay"].Op
	require.EqualValues(t, 500, op["put"].OK)
	require.EqualValues(t, 500, op["get"].OK, "each after the put of its key")
	require.Equal(t, 50, number(t, addr, "DBSIZE"))
	require.Equal(t, 499, number(t, addr, "STRLEN", "user:49"), "the size of its last line")
}
