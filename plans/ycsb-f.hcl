# YCSB's workload F, a read-modify-write workload: half reads, and half reads of a record that is then written back changed.
#
#   loadgen run plans/ycsb-f.hcl
#   loadgen run plans/ycsb-f.hcl -var endpoints=127.0.0.1:6379 -var sessions=64
#
# A record of YCSB is 10 fields of 100 bytes. Here it is one value of 1,000 bytes: an update writes all of it, whereas YCSB writes one field unless
# writeallfields is set.
# Keys are picked by the distribution that YCSB approximates; -var pick='zipf(0.99, ycsb)' draws them as it does, constants and hash included.

plan "ycsb-f" {
  description = "YCSB's workload F: half reads, half read-modify-writes"
}

variable "endpoints" {
  type        = list(string)
  default     = []
  description = "endpoints; without any, a built-in node is started"
}

variable "driver" { default = "redis" }
variable "records" { default = 100000 } # recordcount
variable "sessions" { default = 16 }    # threadcount
variable "duration" { default = "30s" }
variable "pick" { default = "zipf(0.99)" } # requestdistribution

target "store" {
  driver    = var.driver
  endpoints = var.endpoints
  builtin { memory = "512MiB" }
}

dataset "usertable" {
  keys {
    pick  = var.pick
    count = var.records
  }
  values { size = "1000B" } # fieldcount × fieldlength
}

phase "load" {
  target  = target.store
  dataset = dataset.usertable
  populate {}
}

phase "run" {
  target  = target.store
  dataset = dataset.usertable
  ops     = { get = 50 }

  scenario "read-modify-write" {
    weight = 50
    step "get" {}
    step "put" { key = "same" }
  }

  closed {
    sessions = var.sessions
    duration = var.duration
  }
}
