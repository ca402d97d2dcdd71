package panics

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestSafely(t *testing.T) {
	var none []int
	err := Safely(func() error { return errors.New("fails") })
	require.EqualError(t, err, "fails")
	require.NoError(t, Safely(func() error { return nil }))

	err = Safely(func() error { panic("what is that?") })
	require.ErrorContains(t, err, "driver panicked at panics_test.go:")
	require.ErrorContains(t, err, ": what is that?")
	var p *Error
	err = Safely(func() error { return errors.New(string(rune(none[3]))) })
	require.ErrorAs(t, err, &p)
	require.Equal(t, "runtime error: index out of range [3] with length 0", p.Value)
	require.Contains(t, string(p.Stack), "TestSafely")
	require.LessOrEqual(t, len(p.Stack), mostStack)
	require.NoError(t, Recovered(nil))
}
