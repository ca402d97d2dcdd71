package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/loadgen/loadgen/internal/cachenode"
	"github.com/loadgen/loadgen/pkg/plan"
)

func newTarget() *cobra.Command { return group("target", "The built-in target", newServe()) }

func newServe() *cobra.Command {
	var listen, protocol, memory, passwordEnv, service string
	var seed uint64
	var delay time.Duration
	var stalls []string
	var parentPipe bool
	c := &cobra.Command{
		Use:   "serve",
		Short: "Serve a cache node that speaks Redis' protocol or memcached's",
		Long: `Serve a cache node that speaks Redis' protocol (RESP2 and RESP3) or memcached's. Redis' tools and client libraries work with it, by
GET SET DEL MGET MSET EXISTS EXPIRE TTL SCAN and what they ask of a server beside; memcached's commands are the meta commands mg ms md mn,
with version, stats, flush_all and quit.

It keeps to its memory bound by evicting the least recently used keys, counts the requests it got by verb and by peer
(INFO commandstats, INFO peers; stats, stats peers), and answers late or stands still on demand. It ends on Ctrl-C.

With --service it is a queue with one server, whose answers are known beforehand: it keeps when each request came and how long it was worked
on (INFO queue), from which anybody can compute how long it took.`,
		Example: `  loadgen target serve --listen 127.0.0.1:7001 --memory 64MiB
  loadgen target serve --listen 127.0.0.1:7001 --protocol memcached
  loadgen target serve --listen 127.0.0.1:7001 --delay 100us --stall 1s@5s
  loadgen target serve --listen 127.0.0.1:7001 --service exponential:200us`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			cfg := cachenode.Config{Listen: listen, Protocol: protocol, Delay: delay, Version: version()}
			var err error
			if cfg.Memory, err = plan.ParseSize(memory); err != nil {
				return fmt.Errorf("--memory: %w", err)
			}
			if cfg.Service, err = cachenode.ParseService(service); err != nil {
				return fmt.Errorf("--service: %w", err)
			}
			cfg.Service.Seed = seed
			if cfg.Service.Mean > 0 && runtime.GOMAXPROCS(0) < 2 {
				runtime.GOMAXPROCS(2) // who looks at the clock must not keep requests from being taken in
			}
			for _, text := range stalls {
				s, err := cachenode.ParseStall(text)
				if err != nil {
					return fmt.Errorf("--stall: %w", err)
				}
				cfg.Stalls = append(cfg.Stalls, s)
			}
			if passwordEnv != "" {
				if cfg.Password = os.Getenv(passwordEnv); cfg.Password == "" {
					return fmt.Errorf("--password-env: the environment variable %s is not set", passwordEnv)
				}
			}
			if err := cfg.Validate(); err != nil {
				return err
			}
			if parentPipe {
				return serveChild(cmd, cfg)
			}
			return serve(cmd, cfg)
		},
	}
	f := c.Flags()
	f.StringVar(&listen, "listen", "127.0.0.1:7001", "listen on `HOST:PORT`; port 0 for any free one")
	f.StringVar(&protocol, "protocol", "resp", "what clients speak: resp or memcached")
	f.StringVar(&memory, "memory", "64MiB", "bound the sum of keys, values and 96 bytes for each entry to `SIZE`")
	f.DurationVar(&delay, "delay", 0, "hold each reply back for a `DURATION` after its request came")
	f.StringVar(&service, "service", "0s", "work on one request at a time, for a `TIME` each such as 200us, or drawn, exponential:200us")
	f.Uint64Var(&seed, "service-seed", 1, "seed of the times that --service draws")
	f.StringArrayVar(&stalls, "stall", nil, "stand still: `LENGTH@TIME` after the start; repeatable")
	f.StringVar(&passwordEnv, "password-env", "", "ask for the password that the environment variable `NAME` holds")
	f.BoolVar(&parentPipe, "parent-pipe", false, "obey lines on standard input, and end with it")
	return c
}

// serve serves until interrupted.
func serve(cmd *cobra.Command, cfg cachenode.Config) error {
	ctx, stop := signal.NotifyContext(cmd.Context(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	node, err := cachenode.New(cfg)
	if err != nil {
		return failed("%w", err)
	}
	defer node.Close()
	fmt.Fprintf(cmd.OutOrStdout(), "cache node at %s\n", node.Addr())
	if err := node.Serve(ctx); err != nil && ctx.Err() == nil {
		return failed("%w", err)
	}
	return nil
}

// serveChild serves until the parent's pipe ends; signals are the parent's business.
func serveChild(cmd *cobra.Command, cfg cachenode.Config) error {
	if err := cachenode.RunChild(context.WithoutCancel(cmd.Context()), cfg, os.Stdin, cmd.OutOrStdout()); err != nil {
		return failed("%w", err)
	}
	return nil
}
