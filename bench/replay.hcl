# Replays a trace of gets as fast as the server answers, beside the same gets of plans/bench.hcl.

plan "replay" {
  description = "Recorded gets, replayed"
}

variable "endpoints" {
  type    = list(string)
  default = ["127.0.0.1:6379"]
}
variable "file" { default = "gets.trace" }
variable "sessions" { default = 50 }
variable "pipeline" { default = 1 }

target "server" {
  driver    = "redis"
  endpoints = var.endpoints
  op "get" {
    request { form = "requests" }
  }
}

dataset "none" { # the requests bring their own keys
  keys { count = 1 }
  values { size = 1 }
}

phase "replay" {
  target      = target.server
  dataset     = dataset.none
  expect_hits = 0.99
  closed {
    trace {
      file = var.file
      form = "requests"
    }
    sessions = var.sessions
    pipeline = var.pipeline
  }
}
