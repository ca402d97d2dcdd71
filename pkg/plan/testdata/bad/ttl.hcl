plan "ttl" {}

target "t" {
  driver    = "redis"
  endpoints = ["127.0.0.1:7001"]
}

target "p" {
  driver    = "plain"
  endpoints = ["127.0.0.1:7001"]
}

dataset "zero" {
  keys { count = 10 }
  values {
    size = 1
    ttl  = "0s"
  }
}

dataset "long" {
  keys { count = 10 }
  values {
    size = 1
    ttl  = "721h"
  }
}

dataset "short" {
  keys { count = 10 }
  values {
    size = 1
    ttl  = "10us"
  }
}

dataset "odd" {
  keys { count = 10 }
  values {
    size = 1
    ttl  = "1500ms"
  }
}

dataset "good" {
  keys { count = 10 }
  values {
    size = 1
    ttl  = "2s"
  }
}

dataset "unit" {
  keys { count = 10 }
  values {
    size = 1
    ttl  = "ten"
  }
}

phase "p0" {
  target  = target.t
  dataset = dataset.zero
  ops     = { put = 1 }
  closed { iterations = 1 }
}

phase "p1" {
  target  = target.t
  dataset = dataset.long
  ops     = { put = 1 }
  closed { iterations = 1 }
}

phase "p2" {
  target  = target.t
  dataset = dataset.short
  ops     = { put = 1 }
  closed { iterations = 1 }
}

phase "p3" {
  target  = target.t
  dataset = dataset.odd
  ops     = { put = 1 }
  closed { iterations = 1 }
}

phase "p4" {
  target  = target.t
  dataset = dataset.good
  ops     = { put = 1 }
  closed { iterations = 1 }
}

phase "p5" {
  target  = target.t
  dataset = dataset.unit
  ops     = { put = 1 }
  closed { iterations = 1 }
}

phase "read" {
  target  = target.p
  dataset = dataset.good
  ops     = { get = 1 }
  closed { iterations = 1 }
}

phase "write" {
  target  = target.p
  dataset = dataset.good
  ops     = { put = 1 }
  closed { iterations = 1 }
}
