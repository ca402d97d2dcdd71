package command

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// otherFlag lists flags of other tools, with their equivalents here.
type otherFlag struct {
	names string // separated by blanks
	plan  string // what to write in a plan
	flag  string // flag of loadgen bench or capacity, or words on what to write there; "" for none
}

// otherFlags lists the flags of other load generators. The answer to a letter with different meanings in different tools names all of them.
var otherFlags = []otherFlag{
	{"duration time test-time run-time z", `duration = "30s" in the closed { … } or open { … } of its phase`, "duration"},
	{"rate rps qps R", `open { rate = "10k/s" … } in its phase`, "rate"},
	{"vus clients connections concurrency users c u", `closed { sessions = 50 … } in its phase`, "sessions"},
	{"threads t", `closed { sessions = 50 … } in its phase says how many clients there are, --loops N how many threads serve them`, "sessions"},
	{"requests iterations operations n i", `closed { iterations = 1000 … } in its phase: so many ops for each session`, ""},
	{"pipeline depth iodepth P", `closed { pipeline = 16 … } in its phase`, "pipeline"},
	{"keys keyspace keyspacelen key-maximum recordcount r", `keys { count = 100k } in its dataset`, "keys"},
	{"size data-size datasize value-size", `values { size = "200B" } in its dataset`, "size"},
	{"d", `duration = "30s" in the closed { … } or open { … } of its phase, values { size = "200B" } in its dataset`, "write --duration, --size, or --body for what a request holds"},
	{"data data-raw data-binary", `body = "…" in the request { … } of an op in its target`, "body"},
	{"method request X", `method = "POST" in the request { … } of an op in its target`, "method"},
	{"insecure insecure-skip-tls-verify k", `tls { insecure = true } in its target`, "insecure"},
	{"http2 h2 h2c http2-prior-knowledge", `driver = "http2" in its target`, "http2"},
	{"ops ratio tests mix", `ops = { get = 9, put = 1 } in its phase`, "ops"},
	{"host hostname server port url uri addr address target targets endpoint endpoints s p", `endpoints = ["127.0.0.1:6379"] in its target`, "write the address as it is, such as 127.0.0.1:6379 or redis://127.0.0.1:6379"},
	{"driver protocol", `driver = "redis" in its target`, "driver"},
	{"user username", `username = "NAME" in its target`, "user"},
	{"password auth authenticate a", `password = secret("NAME") in its target, with LOADGEN_SECRET_NAME in the environment`, "set LOADGEN_SECRET_TARGET in the environment, or write --password-file FILE"},
	{"warmup warm-up ramp ramp-up rampup", `warmup = "5s" or ramp = "5s" beside duration`, ""},
	{"stage stages", `stages { stage { rate = "1k/s" … } … } in its phase`, ""},
	{"slo threshold thresholds", `assert "NAME" { that = phase.NAME.op.get.response.p95 < duration("5ms") }`, "slo"},
	{"header headers H", `headers = { "NAME" = "VALUE" } in the request { … } of an op in its target`, "header"},
	{"seed", `seed = 1 in its plan block`, ""},
	{"json output o", "", "out"},
}

// elsewhere says how a command expresses another tool's flag; "" if the flag is not in the table.
func elsewhere(cmd *cobra.Command, err *pflag.NotExistError) string {
	name := err.GetSpecifiedName()
	if word, _, _ := strings.Cut(err.GetSpecifiedShortnames(), "="); len(word) > 1 { // as in -rate=5k
		name = word
	}
	i := slices.IndexFunc(otherFlags, func(o otherFlag) bool { return slices.Contains(strings.Fields(o.names), name) })
	if i < 0 {
		return ""
	}
	is := otherFlags[i]
	switch {
	case cmd.Flags().Lookup(is.flag) != nil:
		return "write --" + is.flag
	case strings.Contains(is.flag, " ") && cmd.Flags().Lookup("sessions") != nil:
		return is.flag
	case cmd.Flags().Lookup("var") != nil && is.plan != "":
		return fmt.Sprintf("that is in the plan: write %s; or -var NAME=VALUE, if it has a variable for it. Without a plan: loadgen bench or capacity HOST:PORT", is.plan)
	}
	for _, c := range cmd.Parent().Commands() {
		if c.Flags().Lookup(is.flag) != nil {
			return c.CommandPath() + " has --" + is.flag
		}
	}
	return ""
}
