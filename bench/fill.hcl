# Puts every key of plans/bench.hcl once, for a comparison to read.

plan "fill" {
  description = "Put every key"
}

variable "endpoints" {
  type    = list(string)
  default = ["127.0.0.1:6379"]
}
variable "driver" { default = "redis" }
variable "keys" { default = 100000 }
variable "size" { default = 32 }

target "server" {
  driver    = var.driver
  endpoints = var.endpoints
}

dataset "keys" {
  keys { count = var.keys }
  values { size = var.size }
}

phase "fill" {
  target  = target.server
  dataset = dataset.keys
  populate {}
}
