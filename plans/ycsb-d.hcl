# YCSB's workload D, a read latest workload: 95 reads to 5 inserts, and reads go to what was inserted last.
#
#   loadgen run plans/ycsb-d.hcl
#   loadgen run plans/ycsb-d.hcl -var endpoints=127.0.0.1:6379 -var sessions=64
#
# A record of YCSB is 10 fields of 100 bytes. Here it is one value of 1,000 bytes: an update writes all of it, whereas YCSB writes one field unless
# writeallfields is set.
# YCSB reads what any of its threads inserted last. Here a stream, of which each session has one, reads what it inserted itself, so the plan
# alone decides what is read. After that come the loaded records, the highest number first. Recency is by an exact zipf(0.99).

plan "ycsb-d" {
  description = "YCSB's workload D: 95 reads to 5 inserts, of the latest"
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

target "store" {
  driver    = var.driver
  endpoints = var.endpoints
  builtin { memory = "512MiB" }
}

dataset "usertable" {
  keys {
    pick  = "latest"
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
  ops     = { get = 95, put = 5 } # with pick = "latest" a put inserts a new key
  closed {
    sessions = var.sessions
    duration = var.duration
  }
}
