package drivers

import (
	"runtime/debug"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/loadgen/loadgen/internal/target/drivers/null"
	"github.com/loadgen/loadgen/pkg/driver"
	"github.com/loadgen/loadgen/pkg/driver/drivertest"
	"github.com/loadgen/loadgen/pkg/driver/localfile"
)

func TestAll(t *testing.T) {
	names := make(map[string]bool)
	for _, d := range All() {
		require.False(t, names[d.Name()], "two drivers are called %s", d.Name())
		names[d.Name()] = true
		_, wire := d.(driver.Wire)
		_, dialer := d.(driver.Dialer)
		_, timed := d.(driver.Timed)
		ways := 0
		_, local := d.(localfile.Driver)
		for _, way := range []bool{wire, dialer, timed, local} {
			if way {
				ways++
			}
		}
		require.Equal(t, 1, ways, "ways in which an executor can carry %s", d.Name())
	}
	require.Contains(t, names, "redis")
	require.Contains(t, names, "memcached")
	require.Contains(t, names, "null")
}

// stranger is a driver that the program brings.
type stranger struct {
	driver.Driver
	name string
}

func (s *stranger) Name() string { return s.name }

func TestWith(t *testing.T) {
	set, err := With(&stranger{name: "etcd"})
	require.NoError(t, err)
	require.Equal(t, append(Stock().Names(), "etcd"), set.Names())
	for want, own := range map[string][]driver.Driver{
		`redis.Driver and *drivers.stranger are both called "redis": let Name of one return another word`: {&stranger{name: "redis"}},
		`both called "etcd"`: {&stranger{name: "etcd"}, &stranger{name: "etcd"}},
		`is called "My DB":`: {&stranger{name: "My DB"}},
		"a driver is nil":    {nil},
	} {
		_, err := With(own...)
		require.ErrorContains(t, err, want)
	}
}

func TestOrigins(t *testing.T) {
	words, err := Stock().Origins()
	require.NoError(t, err)
	require.Nil(t, words)
	set, err := With(&stranger{name: "etcd"})
	require.NoError(t, err)
	words, err = set.Origins()
	require.NoError(t, err)
	require.Regexp(t, `^github.com/loadgen/loadgen@\S+ sha256:[0-9a-f]{64}$`, words["etcd"], "a tree without a version is known by the program's hash")
	const here = "github.com/loadgen/loadgen"
	for want, info := range map[string]debug.BuildInfo{
		"mine.example/m@v1.2.3 ":                   {Main: debug.Module{Path: "mine.example/m", Version: "v1.2.3"}},
		here + "@v1.0.0 h1:a":                      {Main: debug.Module{Path: "m"}, Deps: []*debug.Module{{Path: here, Version: "v1.0.0", Sum: "h1:a"}, {Path: here + "/internal/tar"}}},
		here + "/internal/target@v2.0.0 ":          {Main: debug.Module{Path: here, Version: "v1.0.0"}, Deps: []*debug.Module{{Path: here + "/internal/target", Version: "v2.0.0"}}},
		"fork.example/f@v3.0.0 h1:f":               {Deps: []*debug.Module{{Path: here, Version: "v1.0.0", Replace: &debug.Module{Path: "fork.example/f", Version: "v3.0.0", Sum: "h1:f"}}}},
		"../there@(devel) ":                        {Deps: []*debug.Module{{Path: here, Version: "v1.0.0", Replace: &debug.Module{Path: "../there"}}}},
		here + "/internal/target/drivers@(devel) ": {},
	} {
		for _, arch := range []string{"amd64", "arm64"} { // the same commit, built for either, is the same driver
			info.Settings = []debug.BuildSetting{{Key: "GOARCH", Value: arch}}
			m := moduleOf(&info, &stranger{})
			require.Equal(t, want, m.Path+"@"+m.Version+" "+m.Sum)
		}
	}
}

// A built-in node speaks the protocol of a driver on a wire, if it has one.
func TestProtocol(t *testing.T) {
	for name, want := range map[string]string{"redis": "resp", "memcached": "memcached", "hydra": "hydra", "ignite": ""} {
		got, err := Stock().Protocol(name)
		require.NoError(t, err)
		require.Equal(t, want, got, name)
	}
	for _, name := range []string{"log", "nobody"} {
		_, err := Stock().Protocol(name)
		require.ErrorContains(t, err, "is not in this build, or nothing on a wire")
	}
}

func TestNullConformance(t *testing.T) {
	for _, cfg := range []null.Config{
		{Latency: "0s", Spread: "none"},
		{Latency: "1ms", Spread: "exponential", MissEvery: 3, ErrorEvery: 5},
		{Latency: "1ms", Spread: "uniform", MissEvery: 1},
	} {
		drivertest.Run(t, drivertest.Suite{Driver: null.Driver{}, Config: &cfg})
	}
}
