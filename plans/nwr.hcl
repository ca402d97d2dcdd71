# What do W and R cost, and what do they save? Every W and R from 1 to 3 at N = 3 on four cache nodes, each five times, interleaved: two and a half minutes in all.
#
#   loadgen run plans/nwr.hcl                      # starts four nodes on this machine for each run
#   loadgen run plans/nwr.hcl --variant w=2,r=2    # one of them, once
#   loadgen run plans/nwr.hcl -var endpoints=127.0.0.1:7001,127.0.0.1:7002,127.0.0.1:7003,127.0.0.1:7004

plan "nwr" {
  description = "PUT and GET for every W and R at N=3"
}

variable "driver" { default = "redis" } # or "memcached"

variable "endpoints" { # your own servers'; if empty, built-in nodes are started
  type    = list(string)
  default = []
}

variable "w" { default = 2 }
variable "r" { default = 1 }
variable "seconds" { default = 1 } # of each phase

target "space" {
  driver    = var.driver
  endpoints = var.endpoints

  builtin { # used when there are no endpoints
    nodes  = 4
    memory = "64MiB"
  }
  replication {
    coordinate  = "client"
    n           = 3
    w           = var.w
    r           = var.r
    read_fanout = "r" # a get asks R nodes, not all three
  }
}

dataset "items" {
  keys { count = 1000 }
  values { size = 200 }
}

dataset "hot" { # few keys, each put by one session, so that what a get returns can be compared with what had been acknowledged
  keys {
    count   = 40
    writers = "one"
  }
  values { size = 200 }
}

phase "fill" {
  target  = target.space
  dataset = dataset.items
  populate {}
}

phase "put" {
  target  = target.space
  dataset = dataset.items
  ops     = { put = 1 }
  closed {
    sessions = 10
    duration = var.seconds
  }
}

phase "get" {
  target  = target.space
  dataset = dataset.items
  ops     = { get = 1 }
  closed {
    sessions = 10
    duration = var.seconds
  }
}

phase "both" {
  target  = target.space
  dataset = dataset.hot
  ops     = { get = 1, put = 1 }
  staleness {} # how many gets return older values than had been acknowledged?
  closed {
    sessions = 10
    duration = var.seconds
  }
}

experiment {
  repeat   = 5
  baseline = "w=2,r=1"
  matrix {
    w = [1, 2, 3]
    r = [1, 2, 3]
  }
}

chart "put" {
  title = "A put, by W and R"
  over  = "quantile"
  unit  = "ms"
  line "put" { value = phase.put.op.put.response }
}

chart "get" {
  title = "A get, by W and R"
  over  = "quantile"
  unit  = "ms"
  line "get" { value = phase.get.op.get.response }
}

table "quorums" {
  column "put_p50" {
    title = "PUT p50"
    unit  = "us"
    value = phase.put.op.put.response.p50
  }
  column "put_p99" {
    title = "p99"
    unit  = "us"
    value = phase.put.op.put.response.p99
  }
  column "ack1" {
    title = "1st ack"
    unit  = "us"
    value = phase.put.op.put.acks[0].p50
  }
  column "ack2" {
    title = "2nd"
    unit  = "us"
    value = phase.put.op.put.acks[1].p50
  }
  column "ack3" {
    title = "3rd"
    unit  = "us"
    value = phase.put.op.put.acks[2].p50
  }
  column "get_p50" {
    title = "GET p50"
    unit  = "us"
    value = phase.get.op.get.response.p50
  }
  column "get_p99" {
    title = "p99"
    unit  = "us"
    value = phase.get.op.get.response.p99
  }
  column "stale" {
    title = "stale"
    unit  = "%"
    value = phase.both.staleness.ratio
  }
  column "stale_high" {
    title = "at most" # 95 % confidence
    unit  = "%"
    value = phase.both.staleness.high
  }
  column "requests" {
    title = "requests/op"
    value = (phase.both.requests[0].sent + phase.both.requests[1].sent + phase.both.requests[2].sent + phase.both.requests[3].sent + phase.both.requests[4].sent + phase.both.requests[5].sent + phase.both.requests[6].sent + phase.both.requests[7].sent) / (phase.both.op.get.sent + phase.both.op.put.sent)
  }
}
