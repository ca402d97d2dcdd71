plan "targets" {}

dataset "d" {
  keys { count = 10 }
  values {
    size    = 10
    checked = false
  }
}

dataset "small" {
  keys { count = 10 }
  values { size = 23 }
}

target "nowhere" { driver = "redis" }

target "quorum" {
  driver    = "redis"
  endpoints = ["a:1", "b:2"]
  replication {
    n           = 3
    w           = 4
    r           = 0
    read_fanout = "all"
  }
}

target "many" {
  driver    = "redis"
  endpoints = ["a:1"]
  replication {
    n = 17
    w = 1
  }
}

target "places" {
  driver    = "redis"
  endpoints = ["a", "a:0", "a:65536", ":1", "a:007", "b:1", "b:1", "b b:1", 5]
}

target "unserved" {
  driver = "plain"
  builtin { nodes = 2 }
}

target "secrets" {
  driver    = "redis"
  endpoints = ["a:1"]
  password  = "hunter2"
}

target "secret-name" {
  driver    = "redis"
  endpoints = ["a:1"]
  password  = secret("lower")
}

target "secret-place" {
  driver    = "redis"
  endpoints = [secret("HOST")]
  database  = "three"
  delay     = 10
  proxy {}
}

target "driver-says" {
  driver    = "redis"
  endpoints = ["a:1"]
  database  = -1
  prefix    = "bad"
}

phase "a" {
  target  = target.nowhere
  dataset = dataset.d
  ops     = { put = 1 }
  closed { iterations = 1 }
}

phase "b" {
  target  = target.quorum
  dataset = dataset.d
  ops     = { put = 1 }
  closed { iterations = 1 }
}

phase "c" {
  target  = target.many
  dataset = dataset.small
  ops     = { put = 1 }
  closed { iterations = 1 }
}

phase "d" {
  target  = target.places
  dataset = dataset.small
  ops     = { put = 1 }
  closed { iterations = 1 }
}

phase "e" {
  target  = target.unserved
  dataset = dataset.small
  ops     = { put = 1, delete = 1 }
  closed { iterations = 1 }
}

phase "f" {
  target  = target.driver-says
  dataset = dataset.small
  ops     = { put = 1 }
  closed { iterations = 1 }
}

target "timed" {
  driver = "null"
  builtin {}
  replication {
    n = 2
    w = 1
    r = 1
  }
}

phase "g" {
  target  = target.timed
  dataset = dataset.small
  ops     = { put = 1 }
  closed { iterations = 1 }
}

target "sockets" {
  driver = "redis"
  endpoints = [
    "unix:/run/redis.sock",
    "unix://run/redis.sock",
    "unix:///run//redis.sock",
    "unix:///a23456789a23456789a23456789a23456789a23456789a23456789a23456789a23456789a23456789a23456789a23456789a23456789",
  ]
  tls {}
}

phase "sockets" {
  target  = target.sockets
  dataset = dataset.d
  ops     = { get = 1 }
  closed { iterations = 1 }
}

target "driver-says-of-a-block" {
  driver    = "redis"
  endpoints = ["a:1"]
  proxy { name = "bad" }
}
