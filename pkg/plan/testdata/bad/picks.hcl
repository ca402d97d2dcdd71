plan "picks" {}

target "t" {
  driver    = "redis"
  endpoints = ["127.0.0.1:7001"]
}

dataset "bare" {
  keys {
    pick  = "hotspot"
    count = 10
  }
  values { size = 1 }
}

dataset "shares" {
  keys {
    pick  = "hotspot(0.8 on 0.2)"
    count = 10
  }
  values { size = 1 }
}

dataset "one" {
  keys {
    pick  = "hotspot(80%)"
    count = 10
  }
  values { size = 1 }
}

dataset "above" {
  keys {
    pick  = "hotspot(180% on 20%)"
    count = 10
  }
  values { size = 1 }
}

dataset "all" {
  keys {
    pick  = "hotspot(80% on 100%)"
    count = 10
  }
  values { size = 1 }
}

dataset "none" {
  keys {
    pick  = "hotspot(80% on 1%)"
    count = 10
  }
  values { size = 1 }
}

dataset "form" {
  keys {
    pick  = "zipf(0.99, exact)"
    count = 10
  }
  values { size = 1 }
}

dataset "skew" {
  keys {
    pick  = "zipf(0.9, ycsb)"
    count = 10
  }
  values { size = 1 }
}

phase "p" {
  target  = target.t
  dataset = dataset.bare
  ops     = { get = 1 }
  closed { iterations = 1 }
}

phase "q" {
  target  = target.t
  dataset = dataset.above
  ops     = { get = 1 }
  closed { iterations = 1 }
}

phase "r" {
  target  = target.t
  dataset = dataset.all
  ops     = { get = 1 }
  closed { iterations = 1 }
}

phase "s" {
  target  = target.t
  dataset = dataset.none
  ops     = { get = 1 }
  closed { iterations = 1 }
}

phase "u" {
  target  = target.t
  dataset = dataset.skew
  ops     = { get = 1 }
  closed { iterations = 1 }
}

dataset "pools" {
  keys {
    pick  = "latest"
    scope = "session"
    count = 10
  }
  values { size = 1 }
}

dataset "new" {
  keys {
    pick  = "latest"
    count = 10
  }
  values { size = 1 }
}

dataset "flat" {
  keys {
    pick  = "latest(0)"
    count = 10
  }
  values { size = 1 }
}

phase "v" {
  target  = target.t
  dataset = dataset.pools
  ops     = { put = 1 }
  closed { iterations = 1 }
}

phase "w" {
  target  = target.t
  dataset = dataset.new
  ops     = { get = 1 }
  closed { iterations = 1 }
}

phase "x" {
  target  = target.t
  dataset = dataset.flat
  ops     = { put = 1 }
  closed { iterations = 1 }
}

phase "y" {
  target  = target.t
  dataset = dataset.new
  clear {}
}

dataset "plain" {
  keys { count = 10 }
  values { size = 1 }
}

phase "none" {
  target    = target.t
  dataset   = dataset.plain
  ops       = { get = 1 }
  hit_ratio = 0
  closed { iterations = 1 }
}

phase "puts" {
  target    = target.t
  dataset   = dataset.plain
  ops       = { put = 1 }
  hit_ratio = "90%"
  closed { iterations = 1 }
}

phase "deletes" {
  target    = target.t
  dataset   = dataset.plain
  hit_ratio = "90%"
  ops = {
    get    = 1
    delete = 1
  }
  closed { iterations = 1 }
}

phase "both" {
  target      = target.t
  dataset     = dataset.plain
  ops         = { get = 1 }
  hit_ratio   = "90%"
  expect_hits = "80%"
  closed { iterations = 1 }
}

phase "walk" {
  target    = target.t
  dataset   = dataset.plain
  hit_ratio = "90%"
  populate {}
}
