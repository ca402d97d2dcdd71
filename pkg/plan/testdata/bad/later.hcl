plan "later" {}

target "t" {
  driver    = "redis"
  endpoints = ["127.0.0.1:7001"]
  replication {
    coordinate = "server"
    n          = 1
    w          = 1
    r          = 1
  }
}

dataset "d" {
  keys { count = 10 }
  values {
    size    = 24
    growing = true
  }
}

phase "b" {
  target  = target.t
  dataset = dataset.d
  ops     = { get = 1 }
  closed { iterations = 1 }
}

phase "c" {
  target  = target.t
  dataset = dataset.d
  ops     = { append = 1 }
  closed { iterations = 1 }
}

