# What a comparison reads: every key of plans/bench.hcl once.

plan "fill" {
  description = "Put 100,000 keys"
}

variable "endpoint" { default = "127.0.0.1:6379" }
variable "driver" { default = "redis" }
variable "size" { default = 32 }

target "server" {
  driver    = var.driver
  endpoints = [var.endpoint]
}

dataset "keys" {
  keys { count = 100000 }
  values { size = var.size }
}

phase "fill" {
  target  = target.server
  dataset = dataset.keys
  populate {}
}
