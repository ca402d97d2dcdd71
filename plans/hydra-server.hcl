# Hydra Cache's M4 test on its own servers, which copy values by themselves: PUT and GET on four of them with N = 3, W = 2, R = 1, for three builds. The
# tables are those of the write-up, with its figures of 2009 beside them.
#
# The builds are 93fad35 (3 April 2009), c7ec75d (in which a node's identity keeps its hash and text) and 3f8e343 (8 April: guarded logs, cached
# neighbours, and since 0745396 a PUT sends the value back). So the third row's PUT is not the gain of one optimisation. The first two answer alike.
#
#   loadgen run plans/hydra-server.hcl        # on built-in nodes, which answer as the builds do: the first two rows show the noise
#   loadgen run plans/hydra-server.hcl -var baseline='["10.0.0.1:8080", …]' -var identity='["10.0.0.1:8090", …]' -var guards='["10.0.0.1:8100", …]'
#
# The second table loads caches as plans/hydra.hcl does: they know nothing of each other, and loadgen coordinates. Its N, W and R mean other things,
# so compare its figures with each other, not with those of the servers.

plan "hydra-server" {
  description = "Hydra Cache M4 on servers that copy: PUT and GET, 4 nodes, N=3 W=2 R=1"
  seed        = 1
}

variable "baseline" { # the servers of 93fad35: IP:PORT, with ports below 32768; empty: built-in nodes
  type    = list(string)
  default = []
}

variable "identity" { # of c7ec75d
  type    = list(string)
  default = []
}

variable "guards" { # of 3f8e343
  type    = list(string)
  default = []
}

variable "build" { default = "baseline" }
variable "delay" { default = "200us" }   # of a built-in node's replies, as over a network
variable "iterations" { default = 1000 } # of each session
variable "put_ramp" { default = "0s" }   # 10s in the original
variable "get_ramp" { default = "0s" }   # 1s in the original

target "space" {
  driver    = "hydra"
  endpoints = { baseline = var.baseline, identity = var.identity, guards = var.guards }[var.build]

  builtin { # used when endpoints is empty
    nodes = 4
    delay = var.delay
    build = var.build == "guards" ? "2009-04-08" : "2009-04-03"
  }
  replication {
    coordinate = "server"
    n          = 3 # other servers that a put waits for
    w          = 2
    r          = 1
  }
}

target "caches" {
  driver = "redis"
  builtin {
    nodes = 4
    delay = var.delay
  }
  replication {
    coordinate  = "client"
    n           = 3 # nodes that have a key
    w           = 2
    r           = 1
    read_fanout = "r"
  }
}

dataset "items" { # what the put phases write
  keys {
    pick   = "uniform"
    count  = 50
    scope  = "session"
    format = "item-%d"
  }
  values { size = 200 }
}

dataset "one" { # what the get phases read: one key for each session
  keys {
    count  = 1
    scope  = "session"
    format = "one-%d"
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
    ramp       = var.put_ramp
  }
}

phase "get" {
  target  = target.space
  dataset = dataset.one
  ops     = { get = 1 }
  setup { ops = { put = 1 } }
  closed {
    sessions   = 10
    iterations = var.iterations
    ramp       = var.get_ramp
  }
}

phase "client-put" {
  target  = target.caches
  dataset = dataset.items
  ops     = { put = 1 }
  closed {
    sessions   = 10
    iterations = var.iterations
  }
}

phase "client-get" {
  target  = target.caches
  dataset = dataset.one
  ops     = { get = 1 }
  setup { ops = { put = 1 } }
  closed {
    sessions   = 10
    iterations = var.iterations
  }
}

experiment {
  repeat   = 4
  baseline = "baseline"
  variant "baseline" { build = "baseline" }
  variant "identity" { build = "identity" }
  variant "guards" { build = "guards" }
}

table "servers" {
  column "get_min" {
    title = "GET"
    unit  = "/min"
    value = phase.get.op.get.rate
  }
  column "get_x" {
    title = "× GET"
    unit  = "x"
    value = get_min / baseline.get_min
  }
  column "get_avg" {
    title = "average"
    unit  = "ms"
    value = phase.get.op.get.response.mean
  }
  column "get_sd" {
    title = "deviation"
    unit  = "ms"
    value = phase.get.op.get.response.sd
  }
  column "get_med" {
    title = "median"
    unit  = "ms"
    value = phase.get.op.get.response.p50
  }
  column "put_min" {
    title = "PUT"
    unit  = "/min"
    value = phase.put.op.put.rate
  }
  column "put_x" {
    title = "× PUT"
    unit  = "x"
    value = put_min / baseline.put_min
  }
  column "put_avg" {
    title = "average"
    unit  = "ms"
    value = phase.put.op.put.response.mean
  }
  column "put_sd" {
    title = "deviation"
    unit  = "ms"
    value = phase.put.op.put.response.sd
  }
  column "put_med" {
    title = "median"
    unit  = "ms"
    value = phase.put.op.put.response.p50
  }
  column "conflicts" {
    value = phase.put.op.put.conflict
  }
  column "errors" {
    value = phase.get.op.get.due - phase.get.op.get.ok + phase.put.op.put.due - phase.put.op.put.ok - conflicts
  }

  expected "2009: baseline" {
    source  = "Hydra Cache's developer, 17 April 2009: 2 GHz laptop, a ramp of 10 s in the PUT rate"
    get_min = 49000 / 60
    get_x   = 1.00
    put_min = 9000 / 60
    put_x   = 1.00
  }
  expected "2009: cached identity" {
    source  = "Hydra Cache's developer, 17 April 2009: 2 GHz laptop, a ramp of 10 s in the PUT rate"
    get_min = 36000 / 60
    get_x   = 0.73
    put_min = 12000 / 60
    put_x   = 1.33
  }
  expected "2009: and log guards, neighbours, body" {
    source  = "Hydra Cache's developer, 17 April 2009: 2 GHz laptop, a ramp of 10 s in the PUT rate"
    get_min = 81000 / 60
    get_x   = 1.65
    put_min = 11000 / 60
    put_x   = 1.22
  }
}

table "by-client" {
  column "client_get_min" {
    title = "GET"
    unit  = "/min"
    value = phase.client-get.op.get.rate
  }
  column "client_get_x" {
    title = "× GET"
    unit  = "x"
    value = client_get_min / baseline.client_get_min
  }
  column "client_get_avg" {
    title = "average"
    unit  = "ms"
    value = phase.client-get.op.get.response.mean
  }
  column "client_get_sd" {
    title = "deviation"
    unit  = "ms"
    value = phase.client-get.op.get.response.sd
  }
  column "client_get_med" {
    title = "median"
    unit  = "ms"
    value = phase.client-get.op.get.response.p50
  }
  column "client_put_min" {
    title = "PUT"
    unit  = "/min"
    value = phase.client-put.op.put.rate
  }
  column "client_put_x" {
    title = "× PUT"
    unit  = "x"
    value = client_put_min / baseline.client_put_min
  }
  column "client_put_avg" {
    title = "average"
    unit  = "ms"
    value = phase.client-put.op.put.response.mean
  }
  column "client_put_sd" {
    title = "deviation"
    unit  = "ms"
    value = phase.client-put.op.put.response.sd
  }
  column "client_put_med" {
    title = "median"
    unit  = "ms"
    value = phase.client-put.op.put.response.p50
  }
  column "client_errors" {
    title = "errors"
    value = phase.client-get.op.get.due - phase.client-get.op.get.ok + phase.client-put.op.put.due - phase.client-put.op.put.ok
  }
}

chart "puts" {
  title = "PUT over time"
  unit  = "/s"
  line "PUT" { value = phase.put.series.rate }
}

chart "gets" {
  title = "GET over time"
  unit  = "/s"
  line "GET" { value = phase.get.series.rate }
}
