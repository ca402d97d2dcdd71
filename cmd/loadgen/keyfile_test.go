package main_test

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
variable "nodes" { type = list(string) }
target "t" {
	driver    = var.driver
	endpoints = var.nodes
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
}
phase "fill" {
	target  = target.t
	dataset = dataset.d
	populate {}
}
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

// Real servers are asked for the keys of a file, each of them there once after it was filled, whatever the form and the number of workers.
func TestKeysOfAFileOnServers(t *testing.T) {
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
			r := tm.result(30 * time.Second)
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
	r := begin(t, keyFilePlan, "--files", dir, "-var", "driver=memcached", "-var", "form=lines", "-var", nodes(addr)).result(30 * time.Second)
	require.EqualValues(t, 4000, r.Phase["closed"].Op["get"].OK)
	require.EqualValues(t, 300, numberIn(t, memcachedStats(t, addr)["curr_items"]))
}
