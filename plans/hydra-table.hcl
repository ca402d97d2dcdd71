# The table of Hydra Cache's M4 write-up: reads and writes a minute, beside what the original measured on its own machine in 2009. The original
# compared three versions of the server; this plan compares three settings of W on four cache nodes, five times each. For one run: plans/hydra.hcl.
#
#   loadgen run plans/hydra-table.hcl                  # starts four nodes on this machine for each run
#   loadgen run plans/hydra-table.hcl -var endpoints=127.0.0.1:7001,127.0.0.1:7002,127.0.0.1:7003,127.0.0.1:7004

plan "hydra-table" {
  description = "Hydra Cache M4: PUT and GET, 4 nodes, N=3 R=1, W from 1 to 3"
  seed        = 1
}

variable "driver" { default = "redis" } # or "memcached"

variable "endpoints" { # your own servers'; if empty, built-in nodes are started
  type    = list(string)
  default = []
}

variable "memory" { default = "64MiB" } # of each built-in node

variable "n" { default = 3 }             # nodes that hold a key
variable "w" { default = 2 }             # acknowledgements that complete a put
variable "r" { default = 1 }             # answers that complete a get
variable "iterations" { default = 1000 } # of each session

target "space" {
  driver    = var.driver
  endpoints = var.endpoints

  builtin { # used when there are no endpoints
    nodes  = 4
    memory = var.memory
  }
  replication {
    coordinate = "client" # loadgen places keys and counts answers; the nodes know nothing of each other
    n          = var.n
    w          = var.w
    r          = var.r
    timeout    = "1s"

    read_fanout = "r" # as in the original: a get asks R nodes, and the next only when one fails
  }
}

dataset "items" { # what the put phase writes
  keys {
    pick  = "uniform"
    count = 50
    scope = "session" # each session has a pool of 50 keys of its own
  }
  values { size = 200 }
}

dataset "one" { # what the get phase reads: one key for each session
  keys {
    count = 1
    scope = "session"
  }
  values { size = 200 }
}

phase "put" {
  target  = target.space
  dataset = dataset.items
  ops     = { put = 1 }
  closed {
    sessions   = 10
    iterations = var.iterations
  }
}

phase "get" {
  target  = target.space
  dataset = dataset.one
  ops     = { get = 1 }
  setup { ops = { put = 1 } } # untimed: each session puts every key of its pool once
  closed {
    sessions   = 10
    iterations = var.iterations
  }
}

experiment {
  repeat   = 5
  baseline = "w2"
  variant "w1" { w = 1 }
  variant "w2" { w = 2 }
  variant "w3" { w = 3 }
}

table "throughput" {
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
  column "get_cpu" {
    title = "GET CPU"
    unit  = "us"
    value = phase.get.generator.cpu_seconds / phase.get.op.get.due
  }
  column "put_cpu" {
    title = "PUT CPU"
    unit  = "us"
    value = phase.put.generator.cpu_seconds / phase.put.op.put.due
  }
  column "put_wall" { # as JMeter counts it, ramp included
    title = "PUT wall"
    unit  = "/min"
    value = phase.put.op.put.rate_wall
  }
  column "errors" {
    value = phase.get.op.get.due - phase.get.op.get.ok + phase.put.op.put.due - phase.put.op.put.ok
  }

  expected "2009: baseline" {
    source   = "Hydra Cache's developer, 17 April 2009: 2 GHz laptop, other software, W=2, a ramp of 10 s in the PUT rate"
    get_min  = 49000 / 60
    get_s    = 49000 / 60
    get_x    = 1.00
    put_min  = 9000 / 60
    put_s    = 9000 / 60
    put_wall = 9000 / 60
    put_x    = 1.00
  }

  expected "2009: cached identity" {
    source   = "Hydra Cache's developer, 17 April 2009: 2 GHz laptop, other software, W=2, a ramp of 10 s in the PUT rate"
    get_min  = 36000 / 60
    get_s    = 36000 / 60
    get_x    = 0.73
    put_min  = 12000 / 60
    put_s    = 12000 / 60
    put_wall = 12000 / 60
    put_x    = 1.33
  }

  expected "2009: and log guards, neighbours" {
    source   = "Hydra Cache's developer, 17 April 2009: 2 GHz laptop, other software, W=2, a ramp of 10 s in the PUT rate"
    get_min  = 81000 / 60
    get_s    = 81000 / 60
    get_x    = 1.65
    put_min  = 11000 / 60
    put_s    = 11000 / 60
    put_wall = 11000 / 60
    put_x    = 1.22
  }
}

table "latency" {
  column "get_avg" {
    title = "GET avg"
    unit  = "ms"
    value = phase.get.op.get.response.mean
  }
  column "get_med" {
    title = "med"
    unit  = "ms"
    value = phase.get.op.get.response.p50
  }
  column "get_p90" {
    title = "p90"
    unit  = "ms"
    value = phase.get.op.get.response.p90
  }
  column "get_least" {
    title = "min"
    unit  = "ms"
    value = phase.get.op.get.response.min
  }
  column "get_max" {
    title = "max"
    unit  = "ms"
    value = phase.get.op.get.response.max
  }
  column "put_avg" {
    title = "PUT avg"
    unit  = "ms"
    value = phase.put.op.put.response.mean
  }
  column "put_med" {
    title = "med"
    unit  = "ms"
    value = phase.put.op.put.response.p50
  }
  column "put_p90" {
    title = "p90"
    unit  = "ms"
    value = phase.put.op.put.response.p90
  }
  column "put_least" {
    title = "min"
    unit  = "ms"
    value = phase.put.op.put.response.min
  }
  column "put_max" {
    title = "max"
    unit  = "ms"
    value = phase.put.op.put.response.max
  }
}

chart "acks" {
  title = "To the first and to the last acknowledgement of a put"
  over  = "quantile"
  unit  = "ms"
  line "first" { value = phase.put.op.put.acks[0] }
  line "last" { value = phase.put.op.put.acks[2] }
}
