# A load on the keys that a service really has: those of a file, here a CSV exported from a table of users. Some keys are more popular than others.
#
#   loadgen run plans/keys.hcl
#   loadgen run plans/keys.hcl -var endpoints=127.0.0.1:6379 -var file=users.csv

plan "keys" {
  description = "Keys from a file"
}

variable "endpoints" {
  type        = list(string)
  default     = []
  description = "endpoints; without any, a built-in node is started"
}

variable "file" {
  default     = "keys.csv"
  description = "path, relative to this plan"
}

target "cache" {
  driver    = "redis"
  endpoints = var.endpoints
  builtin {}
}

dataset "users" {
  keys {
    file  = var.file
    form  = "csv"
    field = "key" # the column's name
    pick  = "zipf(0.99)"
  }
  values { size = "200B" }
}

phase "fill" {
  target  = target.cache
  dataset = dataset.users
  populate {}
}

phase "read" {
  target  = target.cache
  dataset = dataset.users
  ops     = { get = 9, put = 1 }
  closed {
    sessions = 16
    duration = "10s"
  }
}
