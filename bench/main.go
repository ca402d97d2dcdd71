// Bench runs loadgen and the other clients on this machine on the same work, and prints what each op cost them.
//
// A cell is a server, an op, a value size and a pipeline depth. In each cell, all clients take turns, forwards in one round and backwards in the next
// (A B C, C B A, …). Disturbances thus affect all of them, and each round gives ratios of runs close in time. Server and clients get one processor
// each, if there are two.
//
//	go run ./bench                                      every cell, and log files
//	go run ./bench -cells 'redis/get/32/*' -pairs 7     some of them
//	go run ./bench -open -for 3s                        how late ops of open loads start
//	go run ./bench -logs                                log files beside Mashona's and fio's
//	go run ./bench -against ~/before/bin/loadgen        this state of loadgen beside another, instead of other clients
//	go run ./bench -quick                               a quick check that it works
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"syscall"
	"time"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := compare(ctx, options{}, os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		stop()
		os.Exit(1)
	}
}

// options are the options on the command line, and one that tests set.
type options struct {
	program  string // directory in which loadgen is built, unless it is there and up to date; "" for a temporary one
	cells    string
	pairs    int
	duration time.Duration // length of one client's run
	ops      int64         // ops of one client's run; 0 for as many as fit in the duration
	quick    bool
	open     bool          // measure how late ops of open loads start, instead of cells
	spin     time.Duration // the loop's spin time for open loads; negative for loadgen's own default
	logs     bool          // compare log files, instead of cells
	against  string        // path of another build of loadgen to compare with, instead of other clients
}

func compare(ctx context.Context, o options, args []string, w io.Writer) error {
	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
	flags.StringVar(&o.cells, "cells", "", "run the cells that match a `PATTERN` of SERVER/OP/SIZE/PIPELINE, such as redis/get/32/*, or with -logs of PEER/LAYOUT/SYNC/SIZE/PLACE; several with commas")
	flags.IntVar(&o.pairs, "pairs", 5, "rounds of each cell")
	flags.DurationVar(&o.duration, "for", 1500*time.Millisecond, "how long a client's run shall take, about")
	flags.Int64Var(&o.ops, "ops", 0, "ops of a client's run, instead of a time")
	flags.BoolVar(&o.quick, "quick", false, "one short round of a few cells")
	flags.BoolVar(&o.open, "open", false, "measure how late the ops of open loads start, beside what a queue would have, instead of comparing clients")
	flags.DurationVar(&o.spin, "spin", -1, "with -open: for loadgen's --spin; below 0 for its default")
	flags.BoolVar(&o.logs, "logs", false, "compare log files with those of Mashona and fio, and nothing else")
	flags.StringVar(&o.against, "against", "", "compare with the loadgen in `FILE`, built from another state of the code, instead of with other clients")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if o.quick {
		o.pairs, o.duration = 1, 100*time.Millisecond
		if o.cells == "" {
			o.cells = "redis/*/32/16,memcached/get/32/16"
		}
	}
	if o.against != "" && o.pairs < 2 {
		return fmt.Errorf("-against with -pairs %d: an interval takes 2 or more", o.pairs)
	}
	if o.pairs < 1 || o.duration <= 0 || o.ops < 0 {
		return fmt.Errorf("-pairs %d, -for %v, -ops %d: write numbers above 0", o.pairs, o.duration, o.ops)
	}
	servers, files := allCells(), logCells()
	var err error
	if o.logs {
		files, err = choose(files, o.cells, "PEER/LAYOUT/SYNC/SIZE/PLACE, such as fio/raw/*/1024/memory")
	} else {
		servers, err = choose(servers, o.cells, "SERVER/OP/SIZE/PIPELINE, such as redis/get/32/*")
	}
	if err != nil {
		return err
	}
	b, err := newBench(ctx, w, o)
	if err != nil {
		return err
	}
	defer b.close()
	b.preamble(ctx)
	if o.open {
		return b.punctuality(ctx)
	}
	if o.logs {
		return b.logs(ctx, files)
	}
	if err := b.program(ctx); err != nil {
		return err
	}
	for i := range servers {
		if _, err := exec.LookPath(servers[i].program()); err != nil {
			fmt.Fprintf(w, "\n%s: left out: %v\n", &servers[i], err)
			continue
		}
		if err := b.cell(ctx, &servers[i]); err != nil {
			return fmt.Errorf("%s: %w", &servers[i], err)
		}
	}
	if len(b.shares) > 0 {
		fmt.Fprintf(w, "\nall cells: CPU per op beside that of the other build: %s\n", within(b.shares))
	}
	if o.cells != "" {
		return nil
	}
	return b.logs(ctx, files)
}
