package lint_test

import (
	"fmt"
	"io/fs"
	"regexp"
	"slices"
	"strings"
)

// dependencies are the modules that this one may require. A new one needs a reason that the pull request's reviewer accepts.
var dependencies = []string{
	"github.com/HdrHistogram/hdrhistogram-go", // an oracle for pkg/hist, in tests
	"github.com/agext/levenshtein",            // the word that a misspelled one was probably to be
	"github.com/gopacket/gopacket",            // captured packets, put in order
	"github.com/hashicorp/hcl/v2",             // the language of plans
	"github.com/jackc/pgx/v5",                 // PostgreSQL: the history of runs, and how the connections of driver postgres begin
	"github.com/klauspost/compress",           // gzip and zstd over records
	"github.com/prometheus/client_golang",     // /metrics in every format a scraper may ask for
	"github.com/prometheus/client_golang/exp", // requests of --remote-write, and when to try again
	"github.com/prometheus/client_model",      // its messages: a histogram of both kinds
	"github.com/rogpeppe/go-internal",         // testscript, in tests
	"github.com/spf13/cobra",                  // subcommands, help, completion
	"github.com/spf13/pflag",                  // the flags of cobra
	"github.com/stretchr/testify",             // require, in tests
	"github.com/tidwall/gjson",                // values at a path of a JSON body, without decoding the body
	"github.com/zclconf/go-cty",               // the values of HCL
	"github.com/tsenart/vegeta/v12",           // vegeta's targets in JSON, and its results
	"github.com/valyala/fasthttp",             // responses of HTTP/1.1 without allocations, in driver web
	"go.uber.org/goleak",                      // goroutines that outlive a test
	"golang.org/x/net",                        // HPACK, and the names of HTTP/2, in driver http2
	"golang.org/x/sync",                       // errgroup
	"golang.org/x/sys",                        // epoll, limits
	"golang.org/x/term",                       // the progress display
	"google.golang.org/grpc",                  // the connection between coordinator and workers
	"google.golang.org/protobuf",              // its messages
	"pgregory.net/rapid",                      // property tests
}

var (
	moduleLine   = regexp.MustCompile(`(?m)^module (\S+)$`)
	requiredLine = regexp.MustCompile(`(?m)^(?:require |\t)(\S+) v\S+$`) // an indirect one ends in a comment
	replacedLine = regexp.MustCompile(`(?m)^.* => .*$`)
)

func required(m *module) []string {
	var found []string
	text := m.requirements()
	for _, match := range requiredLine.FindAllStringSubmatch(text, -1) {
		if !slices.Contains(dependencies, match[1]) {
			found = append(found, fmt.Sprintf("go.mod: requires %s, which is not in the list of internal/lint", match[1]))
		}
	}
	for _, line := range replacedLine.FindAllString(text, -1) {
		found = append(found, fmt.Sprintf("go.mod: replaces a module, which go install ignores: %s", strings.TrimSpace(line)))
	}
	return found
}

// requirements returns the text of go.mod.
func (m *module) requirements() string {
	b, err := fs.ReadFile(m.fsys, "go.mod")
	if err != nil {
		return err.Error()
	}
	return string(b)
}
