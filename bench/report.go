package main

import (
	"context"
	"debug/buildinfo"
	"fmt"
	"math"
	"os"
	"os/exec"
	"slices"
	"strings"

	"github.com/loadgen/loadgen/internal/count/stat"
	"github.com/loadgen/loadgen/internal/load/machine"
)

// preamble prints the programs that are compared, and the machine.
func (b *bench) preamble(ctx context.Context) {
	env := machine.Read(os.DirFS("/"))
	fmt.Fprintf(b.w, "machine: %s, %d processors, Linux %s", env.CPUModel, env.CPUs, env.Kernel)
	if env.Governor != "" {
		fmt.Fprintf(b.w, ", governor %s", env.Governor)
	}
	if b.serverOn == nil {
		fmt.Fprintf(b.w, "\nprocessors: servers and clients share all there are: taskset or a second processor is missing\n")
	} else {
		fmt.Fprintf(b.w, "\nprocessors: servers on %s, clients on %s\n", b.serverOn[2], b.clientOn[2])
	}
	fmt.Fprintf(b.w, "version: %s\n", firstLine(ctx, b.clients[0].exe, "version"))
	for _, server := range []string{"redis-server", "memcached", postgresProgram()} {
		fmt.Fprintf(b.w, "version: %s\n", firstLine(ctx, server, "--version"))
	}
	fmt.Fprintf(b.w, "version: %s\n", firstLine(ctx, nginxProgram(), "-v"))
	if b.o.against != "" {
		fmt.Fprintf(b.w, "against: %s, %s\n", b.clients[1].exe, firstLine(ctx, b.clients[1].exe, "version"))
	}
	for _, p := range b.peers {
		if p.version != nil {
			fmt.Fprintf(b.w, "version: %s\n", firstLine(ctx, p.exe, p.version...))
		} else if info, err := buildinfo.ReadFile(p.exe); err == nil {
			fmt.Fprintf(b.w, "version: %s %s, %s\n", p.name, info.Main.Version, info.GoVersion)
		}
	}
	for _, words := range b.others {
		fmt.Fprintln(b.w, words)
	}
}

// firstLine returns the first line that a program prints, or the reason why there is none.
func firstLine(ctx context.Context, exe string, args ...string) string {
	out, err := exec.CommandContext(ctx, exe, args...).CombinedOutput()
	line, _, _ := strings.Cut(string(out), "\n")
	if line == "" && err != nil {
		return fmt.Sprintf("%s: %v", exe, err)
	}
	return line
}

// report prints a cell: medians over its rounds, and the ratios of loadgen to each other client, as median and extremes over rounds.
func (b *bench) report(c *cell, ops int64, field []*entrant) {
	fmt.Fprintf(b.w, "\n%s: %s, values of %d B, %d connections, pipeline %d; %d ops, %d rounds\n", c, c.op, c.size, sessions, c.pipeline, ops, b.o.pairs)
	fmt.Fprintf(b.w, "  %-18s %10s %9s %14s %7s   %-20s %s\n", "", "CPU per op", "calls/op", "rate", "hits", "loadgen's CPU / its", "loadgen's rate / its")
	lg := field[0]
	for _, e := range field {
		if e.err != nil {
			fmt.Fprintf(b.w, "  %-18s could not be run: %s\n", e.name, strings.TrimSpace(e.err.Error()))
			continue
		}
		fmt.Fprintf(b.w, "  %-18s %7.0f ns %9s %12.0f/s %7s", e.name, median(e.of(cpu)),
			callsText(e.calls), median(e.of(func(f figures) float64 { return f.rate })), e.hitsText(c))
		if e != lg {
			fmt.Fprintf(b.w, "   %-20s %s",
				spread(ratios(lg, e, cpu)), spread(ratios(lg, e, func(f figures) float64 { return f.rate })))
		}
		fmt.Fprintln(b.w)
	}
	if b.o.against != "" {
		fmt.Fprintf(b.w, "  CPU per op beside that of the other build: %s\n", within(ratios(lg, field[1], cpu)))
	}
	if c.driver() != c.server {
		var hops, shares []float64
		for _, f := range lg.rounds {
			hops, shares = append(hops, f.hop), append(shares, f.hop/f.cpu)
		}
		fmt.Fprintf(b.w, "  the adapter's CPU per op: %.0f ns, %s times loadgen's\n", median(hops), spread(shares))
	}
	argv := slices.Concat(b.serverOn, serverArgs(c.server, b.running.port, b.dir))
	fmt.Fprintf(b.w, "  $ %s\n", quoted(argv))
	for _, e := range field {
		fmt.Fprintf(b.w, "  $ %s\n", quoted(slices.Concat(b.clientOn, []string{e.exe}, e.args(c, b.running.port, ops))))
	}
}

func cpu(f figures) float64 { return f.cpu }

// within gives the ratio of the processor times per op of the two builds: the geometric mean over rounds and its 95 % interval.
func within(list []float64) string {
	logs := make([]float64, len(list))
	for i, ratio := range list {
		logs[i] = math.Log(ratio)
	}
	mean, half := stat.MeanWithin(logs, 0.05)
	return fmt.Sprintf("%.3f (95 %%: %.3f to %.3f)", math.Exp(mean), math.Exp(mean-half), math.Exp(mean+half))
}

// of returns one figure for each round.
func (e *entrant) of(figure func(figures) float64) []float64 {
	var list []float64
	for _, f := range e.rounds {
		list = append(list, figure(f))
	}
	return list
}

// ratios returns a / b for each round.
func ratios(a, b *entrant, figure func(figures) float64) []float64 {
	list := a.of(figure)
	for i, f := range b.of(figure) {
		list[i] /= f
	}
	return list
}

func (e *entrant) hitsText(c *cell) string {
	if c.op != "get" || c.driver() != c.server { // an adapter does not say
		return ""
	}
	return fmt.Sprintf("%.2f %%", 100*slices.Min(e.of(func(f figures) float64 { return f.hits })))
}

func callsText(calls float64) string {
	if calls < 0 {
		return "-"
	}
	return fmt.Sprintf("%.3f", calls)
}

// median returns the median of at least one number.
func median(list []float64) float64 {
	sorted := slices.Sorted(slices.Values(list))
	n := len(sorted)
	return (sorted[(n-1)/2] + sorted[n/2]) / 2
}

func spread(list []float64) string {
	return fmt.Sprintf("%.3f (%.3f to %.3f)", median(list), slices.Min(list), slices.Max(list))
}

// quoted quotes a command line for a shell.
func quoted(argv []string) string {
	words := slices.Clone(argv)
	for i, w := range words {
		if w == "" || strings.ContainsAny(w, " \"'$*?;&|<>()[]{}\\") {
			words[i] = "'" + strings.ReplaceAll(w, "'", `'\''`) + "'"
		}
	}
	return strings.Join(words, " ")
}
