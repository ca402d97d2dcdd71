# The floor: a load on nothing. What it reports is the cost of loadgen itself on this machine, below which no target's figure means much.
#
#   loadgen run plans/null.hcl -var pipeline=16

plan "null" {
  description = "The generator's own cost"
}

variable "pipeline" { default = 1 }
variable "sessions" { default = 8 }

target "nothing" {
  driver = "null"
}

dataset "items" {
  keys { count = 100000 }
  values { size = 100 }
}

phase "floor" {
  target  = target.nothing
  dataset = dataset.items
  ops     = { get = 1 }
  closed {
    sessions = var.sessions
    pipeline = var.pipeline
    duration = "5s"
  }
}
