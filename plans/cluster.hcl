# Loads a Redis Cluster, then reads every key: move slots, fail over or kill a node meanwhile, and see what that costs.
#
#   loadgen run plans/cluster.hcl -var endpoints=127.0.0.1:7001      # one node is enough, it knows the others
#
# In another terminal, while it runs, with redis-cli:
#
#   redis-cli --cluster reshard 127.0.0.1:7001 --cluster-from ID --cluster-to ID --cluster-slots 500 --cluster-yes
#   redis-cli -p 7004 cluster failover            # on a replica: it takes its master's place

plan "cluster" {
  description = "puts and gets on a Redis Cluster, then every key once"
}

variable "endpoints" { # some nodes of the cluster
  type    = list(string)
  default = ["127.0.0.1:7001"]
}

variable "rate" { default = "5k/s" }
variable "duration" { default = "30s" }
variable "keys" { default = 10000 }

target "cluster" {
  driver    = "redis"
  endpoints = var.endpoints
  cluster   = true
}

dataset "items" {
  keys { count = var.keys }
  values {
    size    = 200
    checked = true # shows a value that is not whole
  }
}

dataset "each" { # the same keys, one after another
  keys {
    pick  = "sequence"
    count = var.keys
  }
  values {
    size    = 200
    checked = true
  }
}

phase "fill" {
  target  = target.cluster
  dataset = dataset.items
  populate {}
}

phase "mixed" {
  target  = target.cluster
  dataset = dataset.items
  ops     = { get = 4, put = 1 }
  open {
    rate     = var.rate
    duration = var.duration
    arrivals = "poisson"
    sessions = 16
    pipeline = 16
  }
}

phase "read" {
  target      = target.cluster
  dataset     = dataset.each
  ops         = { get = 1 }
  expect_hits = 1
  closed { sessions = 16 }
}

assert "no op of the load went wrong" {
  that = phase.mixed.op.get.error + phase.mixed.op.put.error + phase.mixed.op.get.timeout + phase.mixed.op.put.timeout == 0
}

assert "every key is there" {
  that = phase.read.op.get.ok == phase.read.op.get.due
}
