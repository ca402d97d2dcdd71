# What sessions and pipelining do to one server: gets and puts with one and with fifty connections, one op at a time and sixteen in flight,
# each three times, interleaved. It takes about two minutes.
#
#   loadgen run plans/bench-table.hcl                                          # starts a node on this machine for each run
#   loadgen run plans/bench-table.hcl -var endpoints=127.0.0.1:6379 --report bench.html
#
# One cell of it, for comparing with other tools: plans/bench.hcl

plan "bench-table" {
  description = "Gets and puts on 100,000 keys by sessions and pipeline"
}

variable "endpoints" { # your own server's; if empty, a built-in node is started
  type    = list(string)
  default = []
}
variable "driver" { default = "redis" } # or "memcached"
variable "sessions" { default = 50 }
variable "pipeline" { default = 1 }
variable "size" { default = 32 }   # of values, in bytes
variable "seconds" { default = 4 } # of each phase

target "server" {
  driver    = var.driver
  endpoints = var.endpoints

  builtin { # used when there are no endpoints
    nodes  = 1
    memory = "64MiB"
  }
}

dataset "keys" {
  keys { count = 100000 }
  values { size = var.size }
}

phase "fill" {
  target  = target.server
  dataset = dataset.keys
  populate {}
}

phase "get" {
  target  = target.server
  dataset = dataset.keys
  ops     = { get = 1 }
  closed {
    sessions = var.sessions
    pipeline = var.pipeline
    duration = var.seconds
  }
}

phase "put" {
  target  = target.server
  dataset = dataset.keys
  ops     = { put = 1 }
  closed {
    sessions = var.sessions
    pipeline = var.pipeline
    duration = var.seconds
  }
}

experiment {
  repeat   = 4
  baseline = "sessions=50,pipeline=1"
  matrix {
    sessions = [1, 50]
    pipeline = [1, 16]
  }
}

table "sessions-x-pipeline" {
  column "get_min" {
    title = "GET"
    unit  = "/min"
    value = phase.get.op.get.rate
  }
  column "get_s" {
    title = "GET"
    unit  = "/s"
    value = get_min
  }
  column "get_x" {
    title = "× GET"
    unit  = "x"
    value = get_s / baseline.get_s
  }
  column "put_min" {
    title = "PUT"
    unit  = "/min"
    value = phase.put.op.put.rate
  }
  column "put_s" {
    title = "PUT"
    unit  = "/s"
    value = put_min
  }
  column "put_x" {
    title = "× PUT"
    unit  = "x"
    value = put_s / baseline.put_s
  }
  column "errors" {
    value = phase.get.op.get.due - phase.get.op.get.ok + phase.put.op.put.due - phase.put.op.put.ok
  }
}

table "latency" {
  transpose = true
  column "get_avg" {
    title = "GET avg"
    unit  = "ms"
    value = phase.get.op.get.response.mean
  }
  column "get_med" {
    title = "GET med"
    unit  = "ms"
    value = phase.get.op.get.response.p50
  }
  column "get_p90" {
    title = "GET p90"
    unit  = "ms"
    value = phase.get.op.get.response.p90
  }
  column "get_least" {
    title = "GET min"
    unit  = "ms"
    value = phase.get.op.get.response.min
  }
  column "get_most" {
    title = "GET max"
    unit  = "ms"
    value = phase.get.op.get.response.max
  }
  column "put_avg" {
    title = "PUT avg"
    unit  = "ms"
    value = phase.put.op.put.response.mean
  }
  column "put_med" {
    title = "PUT med"
    unit  = "ms"
    value = phase.put.op.put.response.p50
  }
  column "put_p90" {
    title = "PUT p90"
    unit  = "ms"
    value = phase.put.op.put.response.p90
  }
  column "put_least" {
    title = "PUT min"
    unit  = "ms"
    value = phase.put.op.put.response.min
  }
  column "put_most" {
    title = "PUT max"
    unit  = "ms"
    value = phase.put.op.put.response.max
  }
}

chart "get" {
  title = "Gets over time"
  unit  = "/s"
  log   = true
  line "get" { value = phase.get.series.rate }
}

chart "tail" {
  title = "What a get takes"
  over  = "quantile"
  unit  = "us"
  line "get" { value = phase.get.op.get.response }
}
