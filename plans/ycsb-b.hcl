# YCSB's workload B, a read mostly workload: 95 reads to 5 updates.
#
#   loadgen run plans/ycsb-b.hcl
#   loadgen run plans/ycsb-b.hcl -var endpoints=127.0.0.1:6379 -var sessions=64
#
# A record of YCSB is 10 fields of 100 bytes. Here it is one value of 1,000 bytes: an update writes all of it, whereas YCSB writes one field unless
# writeallfields is set.
# Keys are picked by the distribution that YCSB approximates; -var pick='zipf(0.99, ycsb)' draws them as it does, constants and hash included.

plan "ycsb-b" {
  description = "YCSB's workload B: 95 reads to 5 updates"
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
  ops     = { get = 95, put = 5 }
  closed {
    sessions = var.sessions
    duration = var.duration
  }
}
