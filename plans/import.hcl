# Puts the rows of a file as they are: in each line, one column is the key and another the value. Then runs a load on them, in which every put of a key stores
# its own value again.
#
#   loadgen run plans/import.hcl
#   loadgen run plans/import.hcl -var endpoints=127.0.0.1:6379 -var file=users.csv

plan "import" {
  description = "Keys and values from a file"
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
  values {
    file  = var.file
    form  = "csv"
    field = "name"
    pick  = "key" # the value on the key's line
  }
}

phase "import" {
  target  = target.cache
  dataset = dataset.users
  populate {}
}

phase "use" {
  target  = target.cache
  dataset = dataset.users
  ops     = { get = 9, put = 1 }
  closed {
    sessions = 16
    duration = "10s"
  }
}
