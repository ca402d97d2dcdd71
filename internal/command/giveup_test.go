package command_test

import (
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/loadgen/loadgen/internal/faultproxy"
	"github.com/loadgen/loadgen/internal/servertest"
)

// TestWhatGoesOnAtTargets once loadgen has given up: whose answers are lost carries out what it was sent, and no more than the result says.
func TestWhatGoesOnAtTargets(t *testing.T) {
	t.Parallel()
	redis, memcached, web, ignite := servertest.Redis(t), servertest.Memcached(t), servertest.Nginx(t, 0, nil), servertest.StartIgnite(t)
	for of, server := range map[string]struct {
		addr string
		gets func(sent uint64) int
	}{
		"redis": {redis, func(uint64) int { return int(carriedOut(t, redis)["get"]) }},
		"memcached": {memcached, func(uint64) int {
			n, err := strconv.Atoi(memcachedStats(t, memcached)["cmd_get"])
			require.NoError(t, err)
			return n
		}},
		"web":    {web.Addr, func(sent uint64) int { return web.Counts(int(sent))["GET 200"] }},
		"ignite": {ignite.Addr, func(uint64) int { return ignite.Count("gets") }},
	} {
		proxy, err := faultproxy.Start(server.addr)
		require.NoError(t, err)
		defer proxy.Close()
		cache := ""
		if of == "ignite" {
			cache = `cache_name = "items"`
		}
		l := begin(t, `
plan "gives_up" {}
target "t" {
	driver    = "`+of+`"
	endpoints = ["`+proxy.Addr()+`"]
	timeout   = "300ms"
	`+cache+`
}`+tenSmall+fillD+`
phase "load" {
	target  = target.t
	dataset = dataset.d
	ops     = { get = 1 }
	closed {
		sessions = 3
		duration = "3s"
		think    = "20ms"
	}
}`)
		l.underWay()
		proxy.Set(faultproxy.Fault{DropDown: true})
		got := sums(l.result(time.Minute))[proxy.Addr()]["get"]
		require.Positive(t, got.Timeout, of)
		n := uint64(server.gets(got.Sent))
		require.Greater(t, n, got.Answered, of)
		require.LessOrEqual(t, n, got.Sent, of)
	}
}
