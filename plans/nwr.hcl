# What do W and R cost? Every W and R from 1 to 3 at N = 3 on four cache nodes, each five times, interleaved: a minute and a half in all.
#
#   loadgen run plans/nwr.hcl                      # starts four nodes on this machine for each run
#   loadgen run plans/nwr.hcl --variant w=2,r=2    # one of them, once
#   loadgen run plans/nwr.hcl -var endpoints=127.0.0.1:7001,127.0.0.1:7002,127.0.0.1:7003,127.0.0.1:7004

plan "nwr" {
  description = "PUT and GET for every W and R at N=3"
}

variable "driver" { default = "redis" } # or "memcached"

variable "endpoints" { # of your own servers; none: built-in nodes
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
