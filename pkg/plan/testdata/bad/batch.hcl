plan "batch" {}

target "t" {
  driver    = "redis"
  endpoints = ["127.0.0.1:7001", "127.0.0.1:7002"]
}

target "copies" {
  driver    = "redis"
  endpoints = ["127.0.0.1:7001", "127.0.0.1:7002"]
  replication {
    n = 2
    w = 1
    r = 1
  }
}

target "p" {
  driver    = "plain"
  endpoints = ["127.0.0.1:7001"]
}

dataset "d" {
  keys {
    count = 10
  }
  values {
    size = 24
  }
}

dataset "order" {
  keys {
    pick  = "sequence"
    count = 10
  }
  values {
    size = 24
  }
}

dataset "latest" {
  keys {
    pick  = "latest"
    count = 10
  }
  values {
    size = 24
  }
}

dataset "mortal" {
  keys {
    count = 10
  }
  values {
    size = 24
    ttl  = "1s"
  }
}

phase "none" {
  target  = target.t
  dataset = dataset.d
  ops     = { get = 1 }
  batch   = 0
  closed { iterations = 1 }
}

phase "many" {
  target  = target.t
  dataset = dataset.d
  ops     = { get = 1 }
  batch   = 501
  closed { iterations = 1 }
}

phase "half" {
  target  = target.t
  dataset = dataset.d
  ops     = { get = 1 }
  batch   = 1.5
  closed { iterations = 1 }
}

phase "fill" {
  target  = target.t
  dataset = dataset.d
  batch   = 16
  populate {}
}

phase "copies" {
  target  = target.copies
  dataset = dataset.d
  ops     = { get = 1 }
  batch   = 16
  closed { iterations = 1 }
}

phase "order" {
  target  = target.t
  dataset = dataset.order
  ops     = { get = 1 }
  batch   = 16
  closed { iterations = 1 }
}

phase "latest" {
  target  = target.t
  dataset = dataset.latest
  ops     = { get = 1, put = 1 }
  batch   = 16
  closed { iterations = 1 }
}

phase "plain" {
  target  = target.p
  dataset = dataset.d
  ops     = { get = 1 }
  batch   = 16
  closed { iterations = 1 }
}

phase "deletes" {
  target  = target.t
  dataset = dataset.d
  ops     = { get = 1, delete = 1 }
  batch   = 16
  closed { iterations = 1 }
}

phase "mortal" {
  target  = target.t
  dataset = dataset.mortal
  ops     = { get = 1, put = 1 }
  batch   = 16
  closed { iterations = 1 }
}

phase "good" {
  target  = target.t
  dataset = dataset.d
  ops     = { get = 1, put = 1 }
  batch   = 500
  closed { iterations = 1 }
}

phase "scenes" {
  target  = target.t
  dataset = dataset.d
  batch   = 16
  scenario "one" {
    step "get" {}
  }
  closed { iterations = 1 }
}

phase "trace" {
  target  = target.t
  dataset = dataset.d
  batch   = 16
  open {
    trace { file = "a.csv" }
  }
}

phase "hits" {
  target    = target.t
  dataset   = dataset.d
  ops       = { get = 1 }
  batch     = 16
  hit_ratio = "90%"
  closed { iterations = 1 }
}

phase "repeats" {
  target   = target.t
  dataset  = dataset.d
  ops      = { get = 1 }
  batch    = 11
  distinct = true
  closed { iterations = 1 }
}

phase "single" {
  target   = target.t
  dataset  = dataset.d
  ops      = { get = 1 }
  distinct = true
  closed { iterations = 1 }
}
