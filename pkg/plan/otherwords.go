package plan

import (
	"slices"
	"strings"
)

// otherWord is the answer to words that have no meaning where they are written: words of other tools, and words of plans in the wrong place.
type otherWord struct {
	words string // separated by blanks
	in    string // types of blocks, or names of attributes whose values they are, separated by blanks; "" for any block
	write string // WORD stands for the word
}

// topLevel stands for the place outside all blocks.
const topLevel = "top"

const (
	writeSessions   = "Write sessions = 50, in closed { … } or open { … } of a phase: each session has a connection to every endpoint."
	writeOpen       = `Write rate = "10k/s", in open { … } of a phase.`
	writeOp         = `Write op "NAME" { request { … } } in the target, and ops = { NAME = 1 } in the phase.`
	writeAssert     = `Write assert "NAME" { that = phase.NAME.op.get.response.p95 < duration("500ms") }, beside the phases.`
	writeResponse   = `Write a figure of the result, with the unit of what it is held against: phase.NAME.op.get.response.p95 < duration("500ms").`
	writeEndpoints  = `Write endpoints = ["127.0.0.1:6379"] in the target.`
	writeDataset    = `Write it in dataset "NAME" { … }: keys { count = 1000 } and values { size = "200B" }.`
	writeInRequest  = `Write it in request { … } of the op: op "NAME" { request { WORD = … } }.`
	writeInPhase    = `Write it in phase "NAME" { … }, beside its target, dataset and ops.`
	writeOwnCommand = `Word it yourself: op "WORD" { request { … } } in the target, as in plans/commands.hcl.`
	writePopulate   = "Write populate {} in a phase of its own before the load: it puts every key once."
)

// otherWords is the table. The first entry for a word and its place is used.
var otherWords = []otherWord{
	// Values, and names in conditions.
	{"zipfian zipf scrambled_zipfian", "pick", `Write "zipf(0.99)", or "zipf(0.99, ycsb)" for exactly what YCSB draws.`},
	{"random rand", "pick", `Write "uniform".`},
	{"gaussian normal exponential hotspot", "pick", `Write "hotspot(80% on 20%)", or "zipf(0.99)".`},
	{"sequential seq linear parallel", "pick", `Write "sequence".`},
	{"random exponential exp", "arrivals", `Write "poisson".`},
	{"uniform fixed regular", "arrivals", `Write "constant".`},
	{"set setex insert store update upsert add", "ops", "Write put."},
	{"del remove unlink", "ops", "Write delete."},
	{"mget", "ops", "Write get, and batch = 16 in the phase."},
	{"mset", "ops", "Write put, and batch = 16 in the phase."},
	{"incr decr expire exists scan hget hset hgetall lpush rpush lpop rpop lrange sadd srem zadd zrange xadd publish eval ping touch cas select", "ops", writeOwnCommand},
	{"valkey keydb dragonfly garnet kvrocks", "driver", `Write driver = "redis": it speaks the same protocol.`},
	{"rediss", "driver", `Write driver = "redis" and tls {}.`},
	{"http https http1 rest nginx", "driver", `Write driver = "web", and tls {} for https.`},
	{"postgresql pg psql cockroachdb", "driver", `Write driver = "postgres".`},
	{"p", "assert", writeResponse},
	{"p50 p90 p95 p99 avg med http_req_duration http_req_failed latency response_time", "assert", writeResponse},

	// Words of plans in the wrong place.
	{"op", topLevel, writeOp},
	{"op request", "phase closed open scenario", writeOp},
	{"request expect sql command method path headers body", "target", writeInRequest},
	{"sql command method path headers body arguments statement query", "op", writeInRequest},
	{"sql command method path headers body statement query", "phase closed open step", writeOp},
	{"stages stage", "open closed", `Write stages { … } in the phase, instead of open { … }, and one block in it for each rate: stage { rate = "1k/s" duration = "10s" }, on lines of their own.`},
	{"stage", "phase", `Write stages { … } around the blocks stage { … }.`},
	{"rate", "stages", `Write rate in each of its blocks: stage { rate = "1k/s" duration = "10s" }, on lines of their own.`},
	{"rate", "closed", "A closed load is as fast as the target answers: write open { … } instead, with a rate."},
	{"think think_time thinktime pacing sleep", "open stages search", `A load of a rate does not wait for answers: write closed { … } instead, with think = "10ms".`},
	{"iterations", "open stages search", `Write duration = "30s": ops arrive at the rate for so long. iterations = 1000, for each session, is for closed { … }.`},
	{"closed open stages search populate clear setup scenario growth", topLevel, writeInPhase},
	{"ops on_miss expect_hits hit_ratio max_bad samples", topLevel + " closed open", writeInPhase},
	{"driver endpoints timeout builtin tls replication retry cache cluster", topLevel, `Write it in target "NAME" { … }.`},
	{"keys values", topLevel + " phase", writeDataset},
	{"pick count format", "phase closed open dataset", `Write it in keys { … } of the dataset.`},
	{"size ttl record checked", "phase closed open dataset keys", `Write it in values { … } of the dataset.`},
	{"variant repeat baseline", topLevel, `Write it in experiment { … }.`},
	{"seed quantiles", topLevel, `Write it in plan "NAME" { … }.`},
	{"request", topLevel, writeOp},
	{"p50 p90 p95 p99 p999", "slo", `Write response_WORD = "5ms".`},
	{"growing", "values", "Write size."},

	// Loads.
	{"vus vu clients client connections concurrency users threads agents", "", writeSessions},
	{"sessions", topLevel + " plan phase target", writeSessions},
	{"iterations requests operations operationcount loops num_requests", "", "Write iterations = 1000, for each session, in closed { … } of a phase."},
	{"duration time test_time testtime run_time runtime", topLevel + " plan phase", `Write duration = "30s", in closed { … } or open { … } of a phase.`},
	{"time test_time testtime run_time runtime", "closed open", `Write duration = "30s".`},
	{"rate qps rps throughput tps target_rate rate_limit", "", writeOpen},
	{"ramp ramp_up rampup ramp_time warmup warm_up warmup_time", "", `Write ramp = "5s" or warmup = "10s", in closed { … } or open { … } of a phase, and ramp in a stage { … }.`},
	{"think think_time thinktime pacing sleep", "", `Write think = "10ms", in closed { … } of a phase.`},
	{"pipeline depth queue_depth iodepth pipeline_depth inflight concurrent_requests", "", "Write pipeline = 16, in closed { … } or open { … } of a phase: the ops that a session has in flight."},
	{"executor options", "phase", "Write closed { … } for sessions that wait for their answers, open { … } for a rate, stages { … } for several rates, search { … } for the largest."},
	{"load fill preload prepare insert", topLevel + " phase", writePopulate},
	{"cleanup teardown flush", topLevel + " phase", "Write clear {} in a phase at the end: it deletes every key of the dataset."},
	{"get put delete read write set del update", topLevel + " phase", "Write ops = { get = 9, put = 1 } in a phase, and closed { … } or open { … } for how they come."},
	{"mix ratio weights set_ratio readproportion updateproportion", "", "Write ops = { get = 9, put = 1 } in the phase."},
	{"threshold thresholds check checks criteria assertion assertions", "", writeAssert},
	{"slo objective", "phase closed open stages " + topLevel, `Write slo { response_p95 = "5ms" } in search { … } of a phase, to find the largest rate that holds it; or an assert "NAME" { … } beside the phases, to hold a load against it.`},

	// Keys and values.
	{"keyspace keyspacelen key_count keycount key_range recordcount records num_keys key_maximum", "", "Write keys { count = 100000 } in the dataset."},
	{"key_size keysize key_length keylength key_prefix", "", `Write keys { format = "key:%012d" } in the dataset: its text and digits are how long a key is.`},
	{"value_size valuesize data_size datasize fieldlength payload payload_size object_size", "", `Write values { size = "200B" } in the dataset.`},
	{"distribution requestdistribution key_pattern key_distribution zipf zipfian hotspot", "", `Write pick = "zipf(0.99)" in keys { … } of the dataset.`},
	{"ttl expiry expire expiration expires", "", `Write ttl = "60s" in values { … } of the dataset.`},

	// Targets.
	{"host hosts hostname server servers address addresses addr addrs url urls uri port nodes endpoint base_url", topLevel + " plan target phase", writeEndpoints},
	{"protocol type kind", "target", `Write driver = "redis".`},
	{"auth authenticate passwd pass requirepass", "target", `Write password = secret("NAME"), with LOADGEN_SECRET_NAME in the environment.`},
	{"redis valkey memcached postgres postgresql http https web", topLevel, `Write target "WORD" { driver = "…" }.`},
	{"ssl rediss", "target", "Write tls {}."},
	{"retry", "phase closed open stages scenario op", `Write it in target "NAME" { … }: retry { attempts = 3 }.`},
	{"retries max_retries retry_attempts attempts", "", "Write retry { attempts = 3 } in the target: tries of an op in all, the first one included."},
}

// Meant returns what to write instead of a word in a type of block, or as the value of an attribute; "" if the table does not have the word.
func Meant(in, word string) string {
	i := slices.IndexFunc(otherWords, func(o otherWord) bool {
		return slices.Contains(strings.Fields(o.words), word) && (o.in == "" || slices.Contains(strings.Fields(o.in), in))
	})
	if i < 0 {
		return ""
	}
	return strings.ReplaceAll(otherWords[i].write, "WORD", word)
}
