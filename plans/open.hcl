# An open load: arrivals follow their own schedule, whether or not the target keeps up. Response times therefore include the waiting that
# real users would see, which a closed load hides.
#
#   loadgen run plans/open.hcl -var rate=20k/s

plan "open" {
  description = "Poisson arrivals, nine gets to a put, Zipfian keys"
}

variable "driver" { default = "redis" }

variable "endpoints" { # your own servers'; if empty, a built-in node is started
  type    = list(string)
  default = []
}

variable "rate" { default = "5k/s" }
variable "duration" { default = "10s" }

target "cache" {
  driver    = var.driver
  endpoints = var.endpoints
  timeout   = "500ms"
  builtin {
    nodes  = 2
    memory = "64MiB"
  }
}

dataset "items" {
  keys {
    pick  = "zipf(0.99)" # few keys get most of the load
    count = 10000
  }
  values { size = "200B" }
}

phase "fill" { # every key once, so that gets hit
  target  = target.cache
  dataset = dataset.items
  populate {}
}

phase "mixed" {
  target  = target.cache
  dataset = dataset.items
  ops     = { put = 1, get = 9 }
  open {
    rate     = var.rate
    duration = var.duration
    arrivals = "poisson"
    sessions = 32
    pipeline = 8
    ramp     = "1s"
  }
}

assert "the target keeps up" {
  that = phase.mixed.op.get.rate > 0.85 * rate(var.rate)
}

assert "reads are quick" {
  that = phase.mixed.op.get.response.p99 < duration("50ms")
}
