# What do retries add to an outage? A built-in node stands still for three seconds of an open load of puts, whose requests time out after half a second:
# once with clients that try once, and once with clients that try three times.
#
#   loadgen run plans/outage.hcl                    # each three times: a minute and a quarter
#   loadgen run plans/outage.hcl --variant attempts=3

plan "outage" {
  description = "a node stands still, with and without retries"
}

variable "attempts" { default = 1 }
variable "rate" { default = 1000 }   # ops a second
variable "timeout" { default = 0.5 } # of a request, seconds
variable "outage" { default = 3 }    # seconds

target "once" {
  driver  = "redis"
  timeout = var.timeout
  builtin {}
}

target "again" { # as most clients do
  driver  = "redis"
  timeout = var.timeout
  builtin {}
  retry {
    attempts = 3
    backoff  = "100ms"
    jitter   = 0.5
    on       = ["timeout", "error"]
  }
}

dataset "items" {
  keys { count = 1000 }
  values { size = 200 }
}

phase "load" {
  target  = target[var.attempts == 1 ? "once" : "again"]
  dataset = dataset.items
  ops     = { put = 1 }
  max_bad = 1
  open {
    rate      = var.rate
    duration  = 9 + var.outage
    sessions  = 64
    pipeline  = 64
    in_flight = 4096
  }
  event "stop" {
    at  = "4s"
    do  = "stop"
    for = var.outage
  }
}

assert "clients that try once see how long the outage was" { # what they ask for then, they do not get
  that = var.attempts > 1 || abs((phase.load.op.put.timeout + phase.load.op.put.error) / var.rate - var.outage) < 0.2
}

experiment {
  repeat   = 5
  baseline = "attempts=1"
  matrix {
    attempts = [1, 3]
  }
}

table "outage" {
  column "failed" {
    title = "puts failed"
    value = phase.load.op.put.timeout + phase.load.op.put.error
  }
  column "tries" {
    title = "tries a put"
    value = (phase.load.requests[0].sent + phase.load.requests[0].refused) / phase.load.op.put.due
  }
  column "refused" {
    title = "without a connection"
    value = phase.load.requests[0].refused
  }
}
