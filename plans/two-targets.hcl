# Each session reads a value from one store and writes one into another, under the key with the same number: a scenario over two targets. It is one span,
# whose latency is the sum of its steps'; the result has all of them.
#
#   loadgen run plans/two-targets.hcl
#   loadgen run plans/two-targets.hcl -var source='["127.0.0.1:6379"]' -var copy='["127.0.0.1:6380"]'

plan "two-targets" {
  description = "Read from one store, write into another"
}

variable "source" {
  type        = list(string)
  default     = []
  description = "endpoints to read from; without any, a built-in node is started"
}

variable "copy" {
  type        = list(string)
  default     = []
  description = "endpoints to write into; without any, a built-in node is started"
}

variable "duration" { default = "10s" }

target "source" {
  driver    = "redis"
  endpoints = var.source
  builtin {}
}

target "copy" {
  driver    = "redis"
  endpoints = var.copy
  builtin {}
}

dataset "items" {
  keys { count = 10000 }
  values { size = "1000B" }
}

# As many keys as items, so that each item has a copy.
dataset "copies" {
  keys {
    count  = 10000
    format = "copy:%012d"
  }
  values { size = "200B" }
}

phase "fill" {
  target  = target.source
  dataset = dataset.items
  populate {}
}

phase "copy" {
  target  = target.source # for steps that name none
  dataset = dataset.items

  scenario "move" {
    step "get" { as = "read" }
    step "put" {
      as      = "write"
      target  = target.copy
      dataset = dataset.copies
      key     = "same"
    }
  }
  closed {
    sessions = 16
    duration = var.duration
  }
}

assert "the copy is written quickly" {
  that = phase.copy.scenario.move.step.write.response.p99 < duration("50ms")
}
