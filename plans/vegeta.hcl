# Sends the requests in a file of vegeta's targets, at a rate.
#
#   vegeta attack -targets plans/targets.http -rate 50/1s -duration 30s -timeout 30s     # the same load by vegeta itself
#   loadgen run plans/vegeta.hcl
#   loadgen run plans/vegeta.hcl -var endpoints=shop.example.org:80 -var targets=shop.http
#
# docs/web.md says what such a file may hold.

plan "vegeta" {
  description = "The requests of a file, each as likely, at a constant rate"
}

variable "endpoints" { # as in the file's URLs
  type    = list(string)
  default = ["127.0.0.1:8080"]
}
variable "targets" { default = "targets.http" } # in vegeta's HTTP or JSON form
variable "rate" { default = "50/s" }
variable "duration" { default = "30s" }

target "server" {
  driver    = "web"
  endpoints = var.endpoints
  timeout   = "30s"

  op "replay" {
    request { form = "vegeta" }
  }
}

dataset "requests" {
  keys {
    file = var.targets
    form = "vegeta"
  }
  values { size = 0 }
}

phase "attack" {
  target  = target.server
  dataset = dataset.requests
  ops     = { replay = 1 }
  open {
    rate     = var.rate
    duration = var.duration
    sessions = 10
  }
}
