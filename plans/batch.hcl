# What ops with several keys gain: gets of 1, 4, 16 and 64 keys, and likewise puts, on one connection each.
#
#   loadgen run plans/batch.hcl
#   loadgen run plans/batch.hcl --variant sixteen -var endpoints=127.0.0.1:6379
#
# Ops with more keys are fewer and slower, but carry more keys: the table has both rates.

plan "batch" {
  description = "Gets and puts of several keys in an op"
}

variable "driver" { default = "redis" } # or "memcached"
variable "endpoints" {
  type    = list(string)
  default = [] # empty: a built-in node
}
variable "batch" { default = 16 }
variable "seconds" { default = 3 }

target "cache" {
  driver    = var.driver
  endpoints = var.endpoints
  builtin { nodes = 1 }
}

dataset "items" {
  keys {
    pick  = "zipf(0.99)"
    count = 10000
  }
  values {
    size    = "200B"
    checked = true
  }
}

phase "fill" {
  target  = target.cache
  dataset = dataset.items
  populate {}
}

phase "get" {
  target  = target.cache
  dataset = dataset.items
  ops     = { get = 1 }
  batch   = var.batch
  closed {
    sessions = 8
    duration = "${var.seconds}s"
  }
}

phase "put" {
  target  = target.cache
  dataset = dataset.items
  ops     = { put = 1 }
  batch   = var.batch
  closed {
    sessions = 8
    duration = "${var.seconds}s"
  }
}

experiment {
  repeat   = 4
  baseline = "one"
  variant "one" { batch = 1 }
  variant "four" { batch = 4 }
  variant "sixteen" { batch = 16 }
  variant "sixty_four" { batch = 64 }
}

table "batches" {
  column "get_ops" {
    title = "GET, ops"
    unit  = "/s"
    value = phase.get.op.get.rate
  }
  column "get_keys" {
    title = "GET, keys"
    unit  = "/s"
    value = phase.get.op.get.keys.rate
  }
  column "get_p99" {
    title = "GET p99"
    unit  = "ms"
    value = phase.get.op.get.response.p99
  }
  column "put_ops" {
    title = "PUT, ops"
    unit  = "/s"
    value = phase.put.op.put.rate
  }
  column "put_keys" {
    title = "PUT, keys"
    unit  = "/s"
    value = phase.put.op.put.keys.rate
  }
  column "hits" {
    value = phase.get.op.get.hit_ratio
  }
}
