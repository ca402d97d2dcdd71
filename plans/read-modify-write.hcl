# Half of the sessions' work is to read a value, half is to read one and write it back changed, under the same key. The second is a scenario: its
# latency is in the result beside those of its gets and puts.
#
#   loadgen run plans/read-modify-write.hcl
#   loadgen run plans/read-modify-write.hcl -var endpoints=127.0.0.1:6379

plan "read-modify-write" {
  description = "Gets, and gets followed by puts of the same key"
}

variable "endpoints" {
  type        = list(string)
  default     = []
  description = "endpoints; without any, a built-in node is started"
}

variable "duration" { default = "10s" }

target "cache" {
  driver    = "redis"
  endpoints = var.endpoints
  builtin {}
}

dataset "items" {
  keys {
    pick  = "zipf(0.99)"
    count = 10000
  }
  values { size = "1000B" }
}

phase "fill" {
  target  = target.cache
  dataset = dataset.items
  populate {}
}

phase "mixed" {
  target     = target.cache
  dataset    = dataset.items
  ops        = { get = 1 }
  stop_after = "5%" # spares a target in trouble

  scenario "read-modify-write" {
    weight = 1
    step "get" {}
    step "put" {
      key   = "same"
      think = "100us" # how long the application takes to change the value
    }
  }
  closed {
    sessions = 16
    duration = var.duration
  }
}

assert "values come back changed quickly" {
  that = phase.mixed.scenario["read-modify-write"].response.p99 < duration("20ms")
}
