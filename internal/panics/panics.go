// Package panics makes errors of panics in the code of drivers: one that panics ends its op, and not the worker.
package panics

import (
	"fmt"
	"path"
	"runtime"
	"runtime/debug"
	"strings"
)

const (
	mostFrames = 4       // of a driver's functions that the text of a panic names
	mostStack  = 8 << 10 // bytes of a stack that are kept
)

// Error is the panic of a driver's code that an executor called.
type Error struct {
	Value string // what it panicked with
	Where string // file and line of the functions that it was in, the innermost first; a few of them
	Stack []byte // of the goroutine; its beginning
}

// Error names the place before the value: what counts errors by their texts cuts long ones.
func (e *Error) Error() string { return "driver panicked at " + e.Where + ": " + e.Value }

// Recovered makes an error of what recover has returned, and nil of nil. Call it in the deferred function, while the stack still says where the
// panic was.
func Recovered(v any) error {
	if v == nil {
		return nil
	}
	stack := debug.Stack()
	return &Error{Value: fmt.Sprint(v), Where: where(), Stack: stack[:min(len(stack), mostStack)]}
}

// Safely calls f, which calls a driver's code, and makes an error of its panic.
func Safely(f func() error) (err error) {
	defer func() {
		if e := Recovered(recover()); e != nil {
			err = e
		}
	}()
	return f()
}

// where names the functions below the panic that is being recovered from.
func where() string {
	pcs := make([]uintptr, 64)
	frames := runtime.CallersFrames(pcs[:runtime.Callers(2, pcs)])
	var places []string
	panicked := false
	for more := true; more && len(places) < mostFrames; {
		var f runtime.Frame
		f, more = frames.Next()
		own := !strings.HasPrefix(f.Function, "runtime.")
		switch {
		case f.Function == "runtime.gopanic":
			panicked = true
		case panicked && own:
			places = append(places, fmt.Sprintf("%s:%d", path.Base(f.File), f.Line))
		}
	}
	return strings.Join(places, ", ")
}
