# Do saves cost more as their number grows? One session saves one value after another. It takes half a minute at most.
#
#   loadgen run plans/growth.hcl
#   loadgen run plans/growth.hcl -var endpoints=127.0.0.1:6379

plan "growth" {
  description = "cost of a save against how many there are"
}

variable "endpoints" {
  type        = list(string)
  default     = []
  description = "HOST:PORT; without any, a built-in node is started"
}
variable "works" {
  description = "how many values are saved, one after another"
  default     = 20000
}
variable "to" {
  description = "how many saves to predict the time of"
  default     = 50000
}
variable "budget" {
  description = "the load ends after this time; what was measured counts"
  default     = "10s"
}

target "cache" {
  driver    = "redis"
  endpoints = var.endpoints
  builtin {}
}

dataset "works" {
  keys {
    pick  = "sequence"
    count = var.works
  }
  values { size = "1KiB" }
}

phase "save" {
  target  = target.cache
  dataset = dataset.works
  ops     = { put = 1 }
  closed {
    iterations = var.works
    duration   = var.budget
  }
  growth { to = var.to }
}

assert "a save does not cost in proportion to how many there are" {
  that = phase.save.op.put.growth.order_lo < 0.5
}

experiment {
  repeat = 1
  matrix { works = [500, 2000, 8000, 20000] }
}

table "growth" {
  column "done" { value = phase.save.op.put.ok }
  column "ended" { value = phase.save.ended }
  column "total" {
    unit  = "s"
    value = phase.save.seconds
  }
  column "drift" {
    unit  = "x"
    value = phase.save.op.put.growth.drift
  }
  column "order" { value = phase.save.op.put.growth.order }
  column "order_lo" { value = phase.save.op.put.growth.order_lo }
  column "order_hi" { value = phase.save.op.put.growth.order_hi }
  column "to" {
    title = "time of the number asked about"
    unit  = "s"
    value = phase.save.op.put.growth.seconds_to
  }
}

chart "cost" {
  title = "What a save costs, by its number"
  over  = "ops"
  unit  = "us"
  log   = true
  line "mean" { value = phase.save.op.put.growth.course.mean }
}

chart "totals" {
  title = "Time of all saves, by how many there are"
  over  = "var.works"
  unit  = "s"
  log   = true
  line "total" { value = phase.save.seconds }
}
