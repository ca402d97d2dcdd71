// Loadgen with two more drivers: etcd's key space, and a table of MySQL or MariaDB.
//
//	go build -o loadgen ./loadgen
package main

import (
	"github.com/loadgen/loadgen/examples/etcd"
	"github.com/loadgen/loadgen/examples/mysql"
	"github.com/loadgen/loadgen/pkg/loadgen"
)

func main() { loadgen.Main(etcd.Driver{}, mysql.Driver{}) }
