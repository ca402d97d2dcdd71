plan "quantities" { seed = -1 }

target "t" {
  driver  = "redis"
  timeout = "10"
  builtin {
    nodes  = 0
    memory = "64MB/s"
    delay  = "-1ms"
  }
}

dataset "d" {
  keys {
    pick   = "zipf(nan)"
    count  = 1.5
    scope  = "thread"
    format = "key %d"
  }
  values { size = "0.3B" }
}

dataset "e" {
  keys {
    pick   = "zipf(0)"
    count  = 0
    format = "k"
  }
  values { size = "1GiB" }
}

phase "closed" {
  target      = target.t
  dataset     = dataset.d
  ops         = { put = -1, get = "x" }
  max_bad     = 2
  expect_hits = "99"
  closed {
    sessions = "ten"
    duration = "0s"
    ramp     = "1 day"
  }
}

phase "open" {
  target  = target.t
  dataset = dataset.e
  ops     = { put = 1 }
  open {
    rate      = "50k"
    duration  = "1s"
    arrivals  = "bursty"
    in_flight = 17
    on_full   = "drop"
    ramp      = "2s"
  }
}

target "small" {
  driver = "redis"
  builtin {
    memory = "1kB"
    delay  = "2h"
  }
}

dataset "capitals" {
  keys {
    pick  = zipf(0.99)
    count = 10
  }
  values { size = "64mib" }
}

phase "none" {
  target  = target.small
  dataset = dataset.capitals
  ops     = { put = 1 }
  open {
    rate     = "50K/s"
    duration = "1s"
    sessions = 0
  }
}

phase "negative" {
  target  = target.t
  dataset = dataset.e
  ops     = { put = 1 }
  closed {
    iterations = -1
    rate       = "1k/s"
  }
}

phase "ramp" {
  target  = target.t
  dataset = dataset.e
  ops     = { get = 1 }
  open {
    rate     = "1k/s"
    duration = "10s"
    ramp     = "10s"
  }
}
