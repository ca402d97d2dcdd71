// Package panics turns panics in drivers' code into errors: a driver that panics ends its op, not the worker.
package panics

import (
	"fmt"
	"path"
	"runtime"
	"runtime/debug"
	"strings"
)

const (
	mostFrames = 4       // functions that the text of a panic names
	mostStack  = 8 << 10 // bytes of a stack that are kept
)

// Error is a panic in a driver's code that an executor called.
type Error struct {
	Value string // the value of the panic
	Where string // file and line of the innermost few functions, innermost first
	Stack []byte // stack of the goroutine, truncated
}

// Error puts the place before the value: long texts are cut where errors are counted by text.
func (e *Error) Error() string { return "driver panicked at " + e.Where + ": " + e.Value }

// Recovered turns what recover returned into an error; nil stays nil. Call it in the deferred function, while the stack still shows where the panic
// was.
func Recovered(v any) error {
	if v == nil {
		return nil
	}
	stack := debug.Stack()
	return &Error{Value: fmt.Sprint(v), Where: where(), Stack: stack[:min(len(stack), mostStack)]}
}

// Safely calls f, which calls a driver's code, and turns a panic into an error.
func Safely(f func() error) (err error) {
	defer func() {
		if e := Recovered(recover()); e != nil {
			err = e
		}
	}()
	return f()
}

// where lists the functions below the panic being recovered.
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
