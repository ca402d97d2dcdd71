# A ramping arrival rate of k6: 100 arrivals a second, later 200, whatever the server does. Arrivals that find no free slot are dropped.
#
#   loadgen run plans/k6.hcl -var endpoints=127.0.0.1:6379

plan "arrival-rate" {
  description = "Ramping arrival rate with a threshold"
}

variable "endpoints" { # your own servers'; if empty, a built-in node is started
  type    = list(string)
  default = []
}
variable "stage" { default = "30s" }

target "server" {
  driver    = "redis"
  endpoints = var.endpoints
  builtin {}
}

dataset "items" {
  keys { count = 1000 }
  values { size = 100 }
}

phase "put" {
  target  = target.server
  dataset = dataset.items
  populate {}
}

phase "load" {
  target  = target.server
  dataset = dataset.items
  ops     = { get = 1 }
  stages {
    sessions = 50 # maxVUs
    on_full  = "shed"
    stage {
      rate     = "100/s"
      duration = var.stage
    }
    stage {
      rate     = "200/s"
      duration = var.stage
      ramp     = "1s"
    }
  }
}

assert "p90 is below half a second" {
  that = phase.load.levels[1].op.get.response.p90 < duration("500ms")
}
