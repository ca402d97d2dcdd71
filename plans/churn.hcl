# What does it cost to connect anew? Clients that keep their connections beside clients that renew them after 100, 10 and one request, at the same
# rate. It takes a minute.
#
#   loadgen run plans/churn.hcl                                        # starts a node on this machine for each run
#   loadgen run plans/churn.hcl -var endpoints=127.0.0.1:6379 -var rate=5k/s

plan "churn" {
  description = "what a get takes on a connection that is used for 1, 10, 100 or all gets"
}

variable "endpoints" { # your own server's; if empty, a built-in node is started
  type    = list(string)
  default = []
}
variable "driver" { default = "redis" } # or "memcached"
variable "rate" { default = "2k/s" }
variable "gets" { default = 1000000000 } # on a connection

target "cache" {
  driver    = var.driver
  endpoints = var.endpoints
  builtin {
    nodes  = 1
    memory = "64MiB"
  }
}

dataset "items" {
  keys { count = 10000 }
  values { size = 200 }
}

phase "fill" {
  target  = target.cache
  dataset = dataset.items
  populate {}
}

phase "churn" {
  target  = target.cache
  dataset = dataset.items
  ops     = { get = 1 }
  open {
    rate     = var.rate
    duration = "3s"
    sessions = 50
    reconnect { ops = var.gets }
  }
}

experiment {
  repeat   = 4
  baseline = "kept"
  compare  = ["response.p50", "response.p99"]
  variant "kept" {}
  matrix { gets = [100, 10, 1] }
}

table "churn" {
  column "connections" { value = phase.churn.connections.opened }
  column "connect" {
    unit  = "us"
    value = phase.churn.connections.connect.p50
  }
  column "p50" {
    unit  = "us"
    value = phase.churn.op.get.response.p50
  }
  column "p99" {
    unit  = "us"
    value = phase.churn.op.get.response.p99
  }
  column "slower" {
    title = "p99 ÷ kept"
    value = p99
    ratio = "baseline"
  }
}
