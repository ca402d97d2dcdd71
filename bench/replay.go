package main

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"

	"github.com/loadgen/loadgen/internal/plan/trace"
)

// replayOf returns loadgen's client that replays a trace of the gets which loadgen otherwise draws from a dataset.
func replayOf(exe, dir string) client {
	return client{
		name: "replay", exe: exe,
		args: func(c *cell, port string, ops int64) []string {
			if c.server != "redis" || c.op != "get" {
				return nil
			}
			path := filepath.Join(dir, fmt.Sprintf("gets-%d.trace", ops))
			if _, err := os.Stat(path); err != nil {
				_ = writeGets(path, ops) // if it could not, loadgen says what is wrong with the file
			}
			return []string{
				"coordinator", "run", "bench/replay.hcl", "--runs", filepath.Join(dir, "runs"), "--out", resultIn(dir), "-var", `endpoints=["127.0.0.1:` + port + `"]`,
				"-var", "file=" + path, "-var", "sessions=" + strconv.Itoa(sessions), "-var", "pipeline=" + strconv.Itoa(c.pipeline),
			}
		},
		rate: rateIn(dir),
	}
}

// writeGets writes a trace of gets of the keys that loadgen has put.
func writeGets(path string, ops int64) error {
	file, err := os.Create(path)
	if err != nil {
		return err
	}
	w, err := trace.NewWriter(file, trace.Header{Names: []string{"get"}, Clients: sessions})
	random := rand.New(rand.NewPCG(1, 1))
	for i := int64(0); i < ops && err == nil; i++ {
		err = w.Write(i, uint32(i%sessions), 0, fmt.Appendf(nil, "*2\r\n$3\r\nGET\r\n$16\r\nkey:%012d\r\n", random.IntN(keys)))
	}
	if err == nil {
		err = w.Close()
	}
	return errors.Join(err, file.Close())
}
