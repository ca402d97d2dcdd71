# What does losing a node cost at N = 3? One of three built-in nodes is killed for a quarter of a load of puts, and comes back empty; then every key is
# looked for. What must fail or be missing follows from N, W and R, and is asserted.
#
#   loadgen run plans/node-loss.hcl                        # every W and R: a minute and a half
#   loadgen run plans/node-loss.hcl --variant w=3,r=1

plan "node-loss" {
  description = "quorums while a node is gone, and once it is back and empty"
}

variable "w" { default = 2 }
variable "r" { default = 1 }

target "space" {
  driver = "redis"
  builtin { nodes = 3 }
  replication {
    coordinate  = "client"
    n           = 3
    w           = var.w
    r           = var.r
    read_fanout = "r"
    read_from   = "random"
  }
}

dataset "items" { # what is looked for
  keys { count = 10000 }
  values { size = 200 }
}

dataset "others" { # what is put meanwhile
  keys {
    count  = 10000
    format = "other:%08d"
  }
  values { size = 200 }
}

phase "fill" {
  target  = target.space
  dataset = dataset.items
  populate {}
}

phase "outage" {
  target  = target.space
  dataset = dataset.others
  ops     = { put = 1 }
  max_bad = 1
  open {
    rate     = "1k/s"
    duration = "8s"
    sessions = 8
  }
  event "kill" {
    at   = "3s"
    do   = "kill"
    node = 0
    for  = "2s"
  }
}

phase "read" {
  target      = target.space
  dataset     = dataset.items
  ops         = { get = 1 }
  expect_hits = 0
  closed {
    sessions   = 8
    iterations = 2500
  }
}

assert "with W = 3, the puts of the outage fail, 2 s of 8, and no others; with less, none does" {
  that = var.w == 3 ? abs(phase.outage.op.put.quorum_failed / phase.outage.op.put.due - 2 / 8) < 0.05 : phase.outage.op.put.quorum_failed / phase.outage.op.put.due < 0.001
}

assert "a get misses if all R nodes that it asks are the empty one: 1 of 3 with R = 1, and none with more" {
  that = var.r == 1 ? abs(phase.read.op.get.miss / phase.read.op.get.due - 1 / 3) < 0.02 : phase.read.op.get.miss == 0
}

experiment {
  repeat = 1
  matrix {
    w = [1, 2, 3]
    r = [1, 2]
  }
}

table "loss" {
  column "failed" {
    title = "puts failed"
    unit  = "%"
    value = phase.outage.op.put.quorum_failed / phase.outage.op.put.due
  }
  column "p99" {
    title = "put p99"
    unit  = "ms"
    value = phase.outage.op.put.response.p99
  }
  column "missing" {
    title = "gets missed"
    unit  = "%"
    value = phase.read.op.get.miss / phase.read.op.get.due
  }
}
