// The functions that hold.go takes from the runtime have no body in this package, which the compiler accepts where there is a file like this.
