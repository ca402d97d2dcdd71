# What redis-benchmark -t set,get does: one command after another, each with all requests over all connections.
#
#   redis-benchmark -p 6379 -t set,get -n 100000 -c 50 -d 3 -r 100000
#   loadgen run plans/redis-benchmark.hcl -var endpoints=127.0.0.1:6379

plan "redis-benchmark" {
  description = "redis-benchmark -t set,get -r 100000"
}

variable "endpoints" { # your own servers'; if empty, a built-in node is started
  type    = list(string)
  default = []
}
variable "requests" { default = 100000 } # -n, over all connections
variable "clients" { default = 50 }      # -c
variable "pipeline" { default = 1 }      # -P

target "server" {
  driver    = "redis"
  endpoints = var.endpoints
  builtin {}
}

dataset "keys" {
  keys { count = 100000 } # -r
  values { size = 3 }     # -d
}

phase "set" {
  target  = target.server
  dataset = dataset.keys
  ops     = { put = 1 }
  closed {
    sessions   = var.clients
    iterations = ceil(var.requests / var.clients)
    pipeline   = var.pipeline
  }
}

phase "get" {
  target  = target.server
  dataset = dataset.keys
  ops     = { get = 1 }
  closed {
    sessions   = var.clients
    iterations = ceil(var.requests / var.clients)
    pipeline   = var.pipeline
  }
}
