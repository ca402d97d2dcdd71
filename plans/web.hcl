# Gets and puts of a web server, at a rate.
#
#   loadgen run plans/web.hcl -var endpoints=127.0.0.1:8080
#   loadgen run plans/web.hcl -var endpoints=127.0.0.1:8080 -var rate=2k/s
#
# docs/web.md says what a request is, and how to word your own.

plan "web" {
  description = "nine gets to a put, over HTTP/1.1"
}

variable "endpoints" {
  type    = list(string)
  default = ["127.0.0.1:8080"]
}
variable "rate" { default = "500/s" }
variable "size" { default = "1KiB" }
variable "keys" { default = 1000 }
variable "duration" { default = "10s" }

target "server" {
  driver    = "web"
  endpoints = var.endpoints

  op "put" {
    request {
      method  = "PUT"
      path    = "/{key}"
      headers = { "Content-Type" = "application/octet-stream" }
      body    = "{value}"
    }
    expect {
      ok = [200, 201, 204]
    }
  }
}

dataset "items" {
  keys {
    count = var.keys
    pick  = "zipf(0.99)"
  }
  values { size = var.size }
}

phase "fill" {
  target  = target.server
  dataset = dataset.items
  populate {}
}

phase "load" {
  target  = target.server
  dataset = dataset.items
  ops     = { get = 9, put = 1 }
  open {
    rate     = var.rate
    duration = var.duration
  }
}

assert "the server keeps up" {
  that = phase.load.op.get.response.p99 < duration("50ms")
}
