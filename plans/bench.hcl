# One cell of a comparison with other tools: the same number of ops as theirs, with everything measured.
#
#   redis-benchmark -p 6379 -t set -n 1000000 -r 100000 -d 32 -P 16 -q                 # put every key
#   redis-benchmark -p 6379 -t get -n 3000000 -c 50 -P 16 -r 100000 -d 32 -q           # another tool's gets
#   loadgen run plans/bench.hcl -var endpoints=127.0.0.1:6379 -var sessions=50 -var pipeline=16 -var op=get -var ops=3000000
#   loadgen run plans/bench.hcl -var endpoints=127.0.0.1:6379 -var rate=20k/s -var seconds=10
#
# How to compare, and what limits the figures: docs/performance.md

plan "bench" {
  description = "One op on 100,000 keys, closed or at a rate"
}

variable "endpoints" {
  type    = list(string)
  default = ["127.0.0.1:6379"]
}
variable "driver" { default = "redis" }        # or "memcached", "postgres", "web", or "null" for loadgen's own cost
variable "executor" { default = "event loop" } # or "blocking"
variable "sessions" { default = 50 }
variable "pipeline" { default = 1 }
variable "op" { default = "get" } # or "put"
variable "keys" { default = 100000 }
variable "size" { default = 32 } # of values, in bytes

variable "ops" { default = 1000000 } # of all sessions together, in the closed phase

variable "rate" { default = "" } # if given, such as "20k/s", the open phase runs instead
variable "arrivals" { default = "constant" }
variable "seconds" { default = 10 } # of the open phase

locals {
  open = var.rate != ""
  hits = var.op == "get" && var.driver != "null" ? 0.99 : null # no other phase puts the keys
}

target "server" {
  driver    = var.driver
  endpoints = var.endpoints
  executor  = var.driver == "web" ? "blocking" : var.executor
}

dataset "keys" {
  keys { count = var.keys }
  values { size = var.size }
}

phase "closed" {
  when        = !local.open
  target      = target.server
  dataset     = dataset.keys
  ops         = { (var.op) = 1 }
  expect_hits = local.hits
  closed {
    sessions   = var.sessions
    pipeline   = var.pipeline
    iterations = ceil(var.ops / var.sessions)
  }
}

phase "open" {
  when        = local.open
  target      = target.server
  dataset     = dataset.keys
  ops         = { (var.op) = 1 }
  expect_hits = local.hits
  open {
    sessions = var.sessions
    pipeline = var.pipeline
    rate     = local.open ? var.rate : "1/s"
    arrivals = var.arrivals
    duration = "${var.seconds}s"
  }
}
