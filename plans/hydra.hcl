# Hydra Cache's M4 throughput test: PUT and GET on four cache nodes with N=3, W=2, R=1.
#
#   loadgen run plans/hydra.hcl                                  # starts four nodes on this machine
#   loadgen run plans/hydra.hcl -var endpoints=127.0.0.1:7001,127.0.0.1:7002,127.0.0.1:7003,127.0.0.1:7004

plan "hydra-m4" {
  description = "Hydra Cache M4: PUT and GET, 4 nodes, N=3 W=2 R=1"
  seed        = 1 # the same seed gives the same keys, values and mix
}

variable "driver" { default = "redis" } # or "memcached"

variable "endpoints" { # your own servers'; if empty, built-in nodes are started
  type    = list(string)
  default = []
}

variable "memory" { default = "64MiB" } # of each built-in node

# A reply of a built-in node takes as long as over a network. Without that, four nodes on one machine and the loop that loads them would take turns at
# its processors, and the figures would be those of the machine.
variable "delay" { default = "200us" }

variable "n" { default = 3 } # nodes that hold a key
variable "w" { default = 2 } # acknowledgements that complete a put
variable "r" { default = 1 } # answers that complete a get

variable "iterations" { default = 5000 } # ops of each session; the original's 1000 take less than a second here

# The original started its clients over 10 s (PUT) and 1 s (GET). That is longer than the work takes here, and a rate needs a time in
# which all sessions are at work: by default they all start at once.
variable "put_ramp" { default = "0s" }
variable "get_ramp" { default = "0s" }

target "space" {
  driver    = var.driver
  endpoints = var.endpoints

  builtin { # used when there are no endpoints
    nodes  = 4
    memory = var.memory
    delay  = var.delay
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
    ramp       = var.put_ramp
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
    ramp       = var.get_ramp
  }
}

assert "reads are quick" {
  that = phase.get.op.get.response.p99 < duration("20ms")
}
