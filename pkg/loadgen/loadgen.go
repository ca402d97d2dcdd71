// Package loadgen is the command loadgen as a function, for programs that bring drivers of their own:
//
//	func main() { loadgen.Main(etcd.Driver{}) }
//
// Such a program does all that loadgen does, and its plans may say driver = "etcd". Package driver says what a driver is.
package loadgen

import (
	"os"

	"github.com/loadgen/loadgen/internal/command"
	"github.com/loadgen/loadgen/pkg/driver"
)

// Main carries out the program's arguments as loadgen does, and ends the program with loadgen's exit code; it does not return. Plans can also use the
// given drivers. If two drivers have one name, or one has a name that plans cannot spell, Main says so and the code is 2.
func Main(own ...driver.Driver) { os.Exit(command.Main(os.Args[1:], own...)) }
