package main

import (
	"context"
	"debug/elf"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// program prints the size of loadgen, and how long it takes to do one op compared with doing nothing.
func (b *bench) program(ctx context.Context) error {
	lg := &b.clients[0]
	size, err := stripped(lg.exe)
	if err != nil {
		return err
	}
	fmt.Fprintf(b.w, "program: %.1f MB without symbols and debugging data\n", float64(size)/1e6)
	one := []string{
		"coordinator", "run", "plans/bench.hcl", "--runs", filepath.Join(b.dir, "runs"), "-var", "driver=null", "-var", "sessions=1", "-var", "ops=1",
	}
	var shares []float64
	for range 2 * b.o.pairs {
		run, err := b.time(ctx, lg, one)
		if err != nil {
			return err
		}
		nothing, err := b.time(ctx, lg, []string{"version"})
		if err != nil {
			return err
		}
		shares = append(shares, run.Seconds()/nothing.Seconds())
	}
	fmt.Fprintf(b.w, "start: a whole run of one op on the null target takes %s times as long as loadgen version, in %d pairs\n", spread(shares), len(shares))
	return nil
}

// time returns how long a run of a client takes.
func (b *bench) time(ctx context.Context, cl *client, args []string) (time.Duration, error) {
	began := time.Now()
	_, _, err := b.execute(ctx, cl, args)
	return time.Since(began), err
}

// stripped returns the size of a program without symbols and debugging data, as go build -ldflags='-s -w' leaves it.
func stripped(path string) (int64, error) {
	info, err := os.Stat(path)
	if err != nil {
		return 0, err
	}
	f, err := elf.Open(path)
	if err != nil {
		return 0, fmt.Errorf("%s: %w", path, err)
	}
	defer func() { _ = f.Close() }() // opened only for reading
	size := info.Size()
	for _, s := range f.Sections {
		if s.Type == elf.SHT_SYMTAB || s.Name == ".strtab" || strings.HasPrefix(s.Name, ".debug_") {
			size -= int64(s.FileSize)
		}
	}
	return size, nil
}
