plan "p" {}

target "t" {
  driver    = "redis"
  endpoints = ["a:1", "b:1"]
  placement = "modulo"
}

target "slots" {
  driver    = "redis"
  endpoints = ["a:1"]
  placement = "slots"
}

target "cluster" {
  driver    = "redis"
  endpoints = ["a:1", "b:1", "c:1"]
  cluster   = true
  placement = "ketama"
  replication {
    n = 3
    w = 2
    r = 1
  }
}

target "nodes" {
  driver  = "redis"
  cluster = true
  builtin {}
}

dataset "d" {
  keys { count = 1 }
  values { size = 24 }
}

phase "a" {
  target  = target.t
  dataset = dataset.d
  populate {}
}

phase "b" {
  target  = target.slots
  dataset = dataset.d
  populate {}
}

phase "c" {
  target  = target.cluster
  dataset = dataset.d
  populate {}
}

phase "d" {
  target  = target.nodes
  dataset = dataset.d
  populate {}
}
