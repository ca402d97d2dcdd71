package command

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/signal"
	"runtime"
	"runtime/debug"
	"time"

	"github.com/spf13/cobra"

	"github.com/loadgen/loadgen/internal/base/listen"
	"github.com/loadgen/loadgen/internal/base/safefile"
	"github.com/loadgen/loadgen/internal/plan/dialect"
	"github.com/loadgen/loadgen/internal/target/cachenode"
)

// serveFlags are the flags of target serve, as written.
type serveFlags struct {
	listen, protocol, memory, passwordFile string
	delay, delayLog, service, bandwidth    string
	drop, closing, reset                   string
	seed                                   uint64
	stalls                                 []string
	connections                            int
	space                                  cachenode.Space // of protocol hydra
}

func newServe() *cobra.Command {
	var flags serveFlags
	var parentPipe, attentive bool
	c := &cobra.Command{
		Use:   "serve",
		Short: "Serve a cache node that speaks the protocol of Redis, memcached or Hydra Cache",
		Long: `Serve a cache node that speaks the Redis protocol (RESP2 and RESP3) or memcached's. Redis tools and client libraries work with it,
through GET SET DEL MGET MSET INCR EXISTS EXPIRE TTL SCAN and what else they ask of a server. For memcached it knows the meta commands
mg ms md mn and the classic get gets set delete, with version, stats, flush_all and quit.

With --protocol hydra it is a node of Hydra Cache, whose nodes copy values among themselves: PUT, GET and DELETE over HTTP, and /registry,
/storage and /dump. It waits for --n other nodes, at most for --wait, and a put fails if fewer than --w have answered. Its port is below
32768, as the versions of values hold no larger one.

It stays within its memory limit by evicting the least recently used keys, and counts requests by verb and by peer (INFO commandstats,
INFO peers; stats, stats peers). On demand it delays replies, stalls, drops requests or ends connections. It ends on Ctrl-C and prints
what it received and did.

Random values are drawn from --seed. TIMES is a duration, 100us, or a distribution: exp(MEAN), uniform(LEAST, LARGEST),
lognormal(MEDIAN, SIGMA), where SIGMA is the standard deviation of the logarithm. A SHARE is of GETs, SETs and DELs (mg, ms, md and the
like): such a request is carried out and counted, but not answered. After a dropped one its connection sends nothing more, since
replies keep the order of their requests. INFO faults (stats faults) counts these faults.

With --service it is a queue with one server, whose answers are known in advance: it records when each request arrived and how long it
was worked on (INFO queue), from which anyone can compute how long it took.`,
		Example: `  loadgen target serve --listen 127.0.0.1:7001 --memory 64MiB
  loadgen target serve --listen 127.0.0.1:7001 --protocol memcached
  loadgen target serve --listen 127.0.0.1:7001 --protocol hydra --n 1 --w 1 --peers 127.0.0.1:7002
  loadgen target serve --listen 127.0.0.1:7001 --delay 100us --stall 1s@5s
  loadgen target serve --listen 127.0.0.1:7001 --delay 'lognormal(200us, 0.5)' --delay-log delays.csv --seed 7
  loadgen target serve --listen 127.0.0.1:7001 --drop 0.1% --close 0.1% --reset 0.1%
  loadgen target serve --listen 127.0.0.1:7001 --bandwidth 10MiB
  loadgen target serve --listen 127.0.0.1:7001 --service 'exp(200us)'`,
		Args: atMost(0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			cfg, err := flags.config()
			if err != nil {
				return err
			}
			cfg.Attentive = attentive
			switch {
			case attentive:
				runtime.GOMAXPROCS(1) // no second thread has to wake the one that polls
			case cfg.Service != (cachenode.Times{}) && runtime.GOMAXPROCS(0) < 2:
				runtime.GOMAXPROCS(2) // waiting for the clock must not keep requests from being read
			}
			return logged(flags.delayLog, func(log io.Writer) error {
				cfg.DelayLog = log
				if parentPipe {
					return orFailed(cachenode.RunChild(context.WithoutCancel(cmd.Context()), cfg, os.Stdin, cmd.OutOrStdout())) // the parent handles signals
				}
				return serve(cmd, cfg)
			})
		},
	}
	f := c.Flags()
	f.StringVar(&flags.listen, "listen", "127.0.0.1:7001", "listen on `HOST:PORT`; port 0 for any free one")
	f.StringVar(&flags.protocol, "protocol", "resp", "speak `PROTOCOL`: resp, memcached or hydra")
	f.StringVar(&flags.memory, "memory", "64MiB", "limit the sum of keys, values and 96 bytes per entry to `SIZE`")
	f.IntVar(&flags.connections, "max-connections", 10_000, "serve `N` connections at a time, and refuse more")
	f.StringVar(&flags.delay, "delay", "0s", "hold each reply for `TIMES` after its request arrived")
	f.StringVar(&flags.delayLog, "delay-log", "", "write to `FILE`, as CSV, when each request arrived and how long its reply was held")
	f.StringVar(&flags.service, "service", "0s", "work on one request at a time, for `TIMES` each")
	f.StringVar(&flags.bandwidth, "bandwidth", "0B", "receive at most `SIZE` per second over all connections, and send at most as much; 0B: no limit")
	f.StringVar(&flags.drop, "drop", "0%", "do not answer a `SHARE` of the requests, nor any after them on their connections")
	f.StringVar(&flags.closing, "close", "0%", "close the connection instead of answering, for a `SHARE` of the requests")
	f.StringVar(&flags.reset, "reset", "0%", "reset the connection (RST) instead of answering, for a `SHARE` of the requests")
	f.Uint64Var(&flags.seed, "seed", 1, "`SEED` of all random draws")
	f.StringArrayVar(&flags.stalls, "stall", nil, "stall: `LENGTH@TIME` after the start; repeatable")
	f.StringVar(&flags.passwordFile, "password-file", "", "require the password on the first line of `FILE`, which only you may read; needed beyond the loopback")
	f.IntVar(&flags.space.N, "n", 3, "hydra: wait for the answers of `N` other nodes")
	f.IntVar(&flags.space.W, "w", 2, "hydra: a put or delete fails if fewer than `N` of them answer; 1: it is not copied")
	f.IntVar(&flags.space.R, "r", 1, "hydra: a get fails if fewer than `N` nodes have the value, this one included")
	f.DurationVar(&flags.space.Wait, "wait", time.Second, "hydra: wait at most `TIME` for them")
	f.StringSliceVar(&flags.space.Peers, "peers", nil, "hydra: the other nodes, `HOST:PORT,...`")
	f.StringVar(&flags.space.Announce, "announce", "", "hydra: the `HOST:PORT` at which other nodes and clients reach this one, if not the one it listens on")
	f.StringVar(&flags.space.Build, "build", "2011", "hydra: answer as the servers of `BUILD`: 2009-04-03, 2009-04-08 or 2011")
	f.BoolVar(&parentPipe, "parent-pipe", false, "obey lines on standard input, and exit when it ends")
	f.BoolVar(&attentive, "attentive", false, "poll instead of sleeping while requests arrive; takes a processor")
	for _, own := range []string{"parent-pipe", "attentive"} { // for nodes that loadgen starts
		if err := f.MarkHidden(own); err != nil {
			panic(err) // no such flag
		}
	}
	return c
}

// config parses the flags.
func (f *serveFlags) config() (cachenode.Config, error) {
	cfg := cachenode.Config{Listen: f.listen, Protocol: f.protocol, Seed: f.seed, MaxConnections: f.connections, Version: version()}
	var errs []error
	read := func(flag string, err error) {
		if err != nil {
			errs = append(errs, fmt.Errorf("--%s: %w", flag, err))
		}
	}
	var err error
	cfg.Memory, err = dialect.ParseSize(f.memory)
	read("memory", err)
	cfg.Bandwidth, err = dialect.ParseSize(f.bandwidth)
	read("bandwidth", err)
	cfg.Delay, err = cachenode.ParseTimes(f.delay)
	read("delay", err)
	cfg.Service, err = cachenode.ParseTimes(f.service)
	read("service", err)
	cfg.Faults.Drop, err = share(f.drop)
	read("drop", err)
	cfg.Faults.Close, err = share(f.closing)
	read("close", err)
	cfg.Faults.Reset, err = share(f.reset)
	read("reset", err)
	if _, _, err := net.SplitHostPort(f.listen); err != nil {
		read("listen "+f.listen, errors.New("write HOST:PORT, such as 127.0.0.1:7001"))
	}
	for _, text := range f.stalls {
		s, err := cachenode.ParseStall(text)
		read("stall", err)
		cfg.Stalls = append(cfg.Stalls, s)
	}
	if f.passwordFile != "" {
		cfg.Password, err = safefile.Secret(f.passwordFile)
		read("password-file", err)
	}
	if f.protocol == "hydra" {
		cfg.Space = f.space
	}
	if f.connections == 0 {
		errs = append(errs, errors.New("--max-connections 0: write a number above 0"))
	}
	if len(errs) > 0 {
		return cfg, errors.Join(errs...)
	}
	return cfg, cfg.Validate()
}

// logged calls serve with the file that delays are logged to, or nil if there is no name for one.
func logged(name string, serve func(io.Writer) error) error {
	if name == "" {
		return serve(nil)
	}
	file, err := os.Create(name)
	if err != nil {
		return fmt.Errorf("--delay-log: %w", err)
	}
	return errors.Join(serve(file), file.Close())
}

// serve serves until interrupted.
func serve(cmd *cobra.Command, cfg cachenode.Config) error {
	ctx, stop := signal.NotifyContext(cmd.Context(), endings()...)
	defer stop()
	node, err := cachenode.New(cfg)
	if err != nil {
		return refusedPort(cfg, err)
	}
	defer node.Close()
	if os.Getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(node.MemoryLimit())
	}
	fmt.Fprintf(cmd.OutOrStdout(), "cache node at %s\n", node.Addr())
	if err := node.Serve(ctx); err != nil {
		return failed("%w", err)
	}
	fmt.Fprintln(cmd.OutOrStdout(), node.Summary())
	return nil
}

// refusedPort says what to write instead of an address that anyone could use.
func refusedPort(cfg cachenode.Config, err error) error {
	switch {
	case !errors.Is(err, listen.ErrBeyond):
		return failed("%w", err)
	case cfg.Protocol == "memcached", cfg.Protocol == "hydra":
		return fmt.Errorf("--listen: %w: this node's %s protocol has no password, so it serves this machine only: write 127.0.0.1:PORT", err, cfg.Protocol)
	}
	return fmt.Errorf("--listen: %w: write 127.0.0.1:PORT, or authenticate clients: --password-file FILE, with a password in a file of mode 0600", err)
}

// share parses a percentage as in plans, such as "0.1%", or a number, such as 0.001.
func share(text string) (float64, error) {
	if n, rest, err := dialect.CutNumber(text); err == nil && rest == "" {
		return n, nil
	}
	return dialect.ParseShare(text)
}
