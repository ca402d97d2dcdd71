# Replays what clients once asked of a cache, at the same times or faster. The trace has the form in which traces of production caches are
# published: timestamp, key, key size, value size, client, op, TTL.
#
#   loadgen run plans/trace.hcl
#   loadgen run plans/trace.hcl -var speed=2 -var endpoints=127.0.0.1:6379

plan "trace" {
  description = "A recorded trace, replayed"
}

variable "endpoints" {
  type        = list(string)
  default     = []
  description = "endpoints; without any, a built-in node is started"
}

variable "file" {
  default     = "trace.csv"
  description = "path, relative to this plan"
}

variable "speed" { default = 1 }

target "cache" {
  driver    = "redis"
  endpoints = var.endpoints
  builtin {}
}

dataset "values" {
  keys { count = 1 } # keys come from the trace
  values { size = "100B" }
}

phase "replay" {
  target  = target.cache
  dataset = dataset.values
  open {
    trace {
      file  = var.file
      speed = var.speed
    }
    sessions = 16
    pipeline = 16
  }

  # Instead of open, as fast as the sessions can, over and over:
  #
  #   closed {
  #     trace {
  #       file = var.file
  #       loop = true
  #     }
  #     sessions = 16
  #     duration = "30s"
  #   }
}
