// Record writes the histograms of runs' seconds as recorded.gz:
//
//	XDG_STATE_HOME=DIR loadgen run internal/result/experiment/testdata/record/plan.hcl
//	go run ./internal/result/experiment/testdata/record DIR/loadgen/runs EXPERIMENT > internal/result/experiment/testdata/recorded.gz
//
// The form is, compressed and all in unsigned varints: for each run the number of its seconds, and for each second the number of its buckets, their
// values in nanoseconds less the value before, and their counts. The first and the last second are left out.
package main

import (
	"compress/gzip"
	"encoding/binary"
	"log"
	"os"

	"github.com/loadgen/loadgen/internal/result/rundir"
	"github.com/loadgen/loadgen/internal/result/timeline"
	"github.com/loadgen/loadgen/pkg/driver"
)

func main() {
	root, name := os.Args[1], os.Args[2]
	x, err := rundir.LoadExperiment(root, name)
	if err != nil {
		log.Fatal(err)
	}
	out, err := gzip.NewWriterLevel(os.Stdout, gzip.BestCompression)
	if err != nil {
		log.Fatal(err)
	}
	for _, one := range x.Runs {
		if err := write(out, root, one.ID); err != nil {
			log.Fatal(err)
		}
	}
	if err := out.Close(); err != nil {
		log.Fatal(err)
	}
}

func write(out *gzip.Writer, root, id string) error {
	r, err := rundir.Load(root, id)
	if err != nil {
		return err
	}
	d := timeline.NewRun(r, driver.Words{})
	if err := rundir.Snapshots(root, id, func(_, snapshot []byte) error { return d.Add(snapshot) }); err != nil {
		return err
	}
	columns := d.Phases(r)["load"][0].Columns
	columns = columns[1 : len(columns)-1]
	b := binary.AppendUvarint(nil, uint64(len(columns)))
	for i := range columns {
		var pairs []byte
		n, last := uint64(0), int64(0)
		for value, count := range columns[i].Answered.Buckets() {
			pairs = binary.AppendUvarint(binary.AppendUvarint(pairs, uint64(value-last)), count)
			n, last = n+1, value
		}
		b = append(binary.AppendUvarint(b, n), pairs...)
	}
	_, err = out.Write(b)
	return err
}
