# Loads whose answers are known. loadgen selfcheck runs it, and starts the nodes whose addresses the variables hold.

plan "selfcheck" {
  description = "Loads whose answers are known"
  seed        = 1
}

variable "plain" { default = "127.0.0.1:7001" }       # a built-in node
variable "half" { default = "127.0.0.1:7002" }        # one that works on each request for 50 us,
variable "constant" { default = "127.0.0.1:7003" }    # for 100 us,
variable "exponential" { default = "127.0.0.1:7004" } # for an exponential time with a mean of 50 us,
variable "queue" { default = "127.0.0.1:7005" }       # and for one with a mean of 1 ms
variable "held" { default = "127.0.0.1:7006" }        # one that holds each reply back for 1 ms

target "nothing" { driver = "null" }

target "timer" {
  driver  = "null"
  latency = "100us"
}

target "draws" {
  driver  = "null"
  latency = "100us"
  spread  = "exponential"
}

target "plain" {
  driver    = "redis"
  endpoints = [var.plain]
  timeout   = "5s" # it stands still for a second
}

target "half" {
  driver    = "redis"
  endpoints = [var.half]
}

target "constant" {
  driver    = "redis"
  endpoints = [var.constant]
}

target "exponential" {
  driver    = "redis"
  endpoints = [var.exponential]
}

target "held" {
  driver    = "redis"
  endpoints = [var.held]
}

target "queue" {
  driver    = "redis"
  endpoints = [var.queue]
}

dataset "keys" { # nobody puts them: to be told so takes as long
  keys { count = 1000 }
  values { size = 32 }
}

phase "generator" {
  target  = target.nothing
  dataset = dataset.keys
  ops     = { get = 1 }
  closed {
    sessions   = 8
    iterations = 250000
  }
}

phase "timer" {
  target  = target.timer
  dataset = dataset.keys
  ops     = { get = 1 }
  closed {
    sessions   = 1
    iterations = 5000
  }
}

phase "draws" {
  target  = target.draws
  dataset = dataset.keys
  ops     = { get = 1 }
  closed {
    sessions   = 1
    iterations = 5000
  }
}

phase "floor" {
  target  = target.plain
  dataset = dataset.keys
  ops     = { get = 1 }
  closed {
    sessions = 1
    duration = "250ms"
  }
}

phase "half" { # the floor of the next two: what an op takes beside the work. All three last as long on a busy machine as on another
  target  = target.half
  dataset = dataset.keys
  ops     = { get = 1 }
  closed {
    sessions = 1
    duration = "1s"
  }
}

phase "constant" {
  target  = target.constant
  dataset = dataset.keys
  ops     = { get = 1 }
  closed {
    sessions = 1
    duration = "1s"
  }
}

phase "exponential" {
  target  = target.exponential
  dataset = dataset.keys
  ops     = { get = 1 }
  closed {
    sessions = 1
    duration = "1s"
  }
}

phase "arrivals" { # the floor of the next one: who sleeps in between wakes later
  target  = target.held
  dataset = dataset.keys
  ops     = { get = 1 }
  open {
    rate     = "700/s"
    arrivals = "poisson"
    duration = "2s"
    sessions = 8
    pipeline = 64
  }
}

phase "queue" {
  target  = target.queue
  dataset = dataset.keys
  ops     = { get = 1 }
  open {
    rate     = "700/s"
    arrivals = "poisson"
    duration = "4s"
    sessions = 8
    pipeline = 64
  }
}

phase "stall" { # the node stands still for a second of it
  target  = target.plain
  dataset = dataset.keys
  ops     = { get = 1 }
  open {
    rate     = "1k/s"
    arrivals = "constant"
    duration = "3s"
    sessions = 4
    pipeline = 1
    drain    = "2s"
  }
}
