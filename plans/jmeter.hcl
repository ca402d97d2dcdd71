# A thread group of JMeter: ten users, each reading its own keys a thousand times, with a ramp of one second.
#
#   loadgen run plans/jmeter.hcl -var endpoints=127.0.0.1:6379

plan "thread-group" {
  description = "10 threads, 1,000 loops, ramp-up of 1 s"
}

variable "endpoints" { # your own servers'; if empty, a built-in node is started
  type    = list(string)
  default = []
}
variable "threads" { default = 10 }
variable "loops" { default = 1000 }
variable "ramp" { default = "1s" }
variable "think" { default = "2ms" } # constant timer

target "server" {
  driver    = "redis"
  endpoints = var.endpoints
  builtin {}
}

dataset "own" {
  keys {
    count = 50
    scope = "session"
  }
  values { size = 200 }
}

phase "read" {
  target  = target.server
  dataset = dataset.own
  ops     = { get = 1 }
  setup { ops = { put = 1 } } # setUp thread group
  closed {
    sessions   = var.threads
    iterations = var.loops
    ramp       = var.ramp
    think      = var.think
  }
}

assert "reads are quick" { # duration assertion
  that = phase.read.op.get.response.p90 < duration("1s")
}
