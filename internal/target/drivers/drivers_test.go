package drivers

import (
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

// A built-in node speaks the protocol of a driver on a wire, if it has one.
func TestProtocol(t *testing.T) {
	for name, want := range map[string]string{"redis": "resp", "memcached": "memcached", "hydra": "hydra", "ignite": ""} {
		got, err := Protocol(name)
		require.NoError(t, err)
		require.Equal(t, want, got, name)
	}
	for _, name := range []string{"log", "nobody"} {
		_, err := Protocol(name)
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
