# How much does it hold? Finds the largest rate at which the p99 response time stays within a limit, the curve of rate against latency, and
# its knee. Takes less than a minute.
#
#   loadgen run plans/knee.hcl -var endpoints=127.0.0.1:6379
#   loadgen run plans/knee.hcl -var driver=memcached -var slo=1ms

plan "knee" {
  description = "The largest rate of GETs that keeps the p99 response time within a limit, and the knee on the way to it"
}

variable "endpoints" {
  type        = list(string)
  default     = []
  description = "HOST:PORT; without any, a built-in node is started"
}
variable "driver" { default = "redis" }
variable "slo" {
  description = "what the p99 response time must not exceed"
  default     = "5ms"
}
variable "from" { default = "1k/s" }
variable "budget" { default = "45s" }
variable "step" { default = "1500ms" }
variable "sessions" { default = 50 }
variable "pipeline" {
  description = "requests that a session may have outstanding. More than one lets them travel together: far more ops a second, and no sharp edge"
  default     = 1
}
variable "keys" { default = 100000 }
variable "size" { default = 32 }

target "server" {
  driver    = var.driver
  endpoints = var.endpoints
  builtin {}
}

dataset "items" {
  keys { count = var.keys }
  values { size = var.size }
}

phase "fill" {
  target  = target.server
  dataset = dataset.items
  populate {}
}

phase "knee" {
  target  = target.server
  dataset = dataset.items
  ops     = { get = 1 }
  search {
    from          = var.from
    step_duration = var.step
    budget        = var.budget
    arrivals      = "poisson"
    sessions      = var.sessions
    pipeline      = var.pipeline # ops that find no room wait here, and the wait counts
    slo { response_p99 = var.slo }
  }
}
