plan "tls" {}

dataset "d" {
  keys { count = 10 }
  values { size = 10 }
}

target "here" {
  driver = "redis"
  builtin {}
  tls {}
}

target "half" {
  driver    = "redis"
  endpoints = ["a:1"]
  tls {
    ca   = "ca.pem"
    cert = "client.pem"
  }
}

target "named" {
  driver    = "redis"
  endpoints = ["a:1"]
  tls { server_name = "cache.example.org:6379" }
}

target "blind" {
  driver    = "redis"
  endpoints = ["a:1"]
  tls { skip_verify = true }
}

target "fast" {
  driver    = "redis"
  endpoints = ["a:1"]
  executor  = "event loop"
  tls {}
}

target "nothing" {
  driver = "null"
  tls {}
}

target "spelt" {
  driver    = "redis"
  endpoints = ["a:1"]
  executor  = "thread"
}

phase "a" {
  target  = target.here
  dataset = dataset.d
  ops     = { put = 1 }
  closed { iterations = 1 }
}

phase "b" {
  target  = target.half
  dataset = dataset.d
  ops     = { put = 1 }
  closed { iterations = 1 }
}

phase "c" {
  target  = target.named
  dataset = dataset.d
  ops     = { put = 1 }
  closed { iterations = 1 }
}

phase "d" {
  target  = target.blind
  dataset = dataset.d
  ops     = { put = 1 }
  closed { iterations = 1 }
}

phase "e" {
  target  = target.fast
  dataset = dataset.d
  ops     = { put = 1 }
  closed { iterations = 1 }
}

phase "f" {
  target  = target.nothing
  dataset = dataset.d
  ops     = { put = 1 }
  closed { iterations = 1 }
}

phase "g" {
  target  = target.spelt
  dataset = dataset.d
  ops     = { put = 1 }
  closed { iterations = 1 }
}
