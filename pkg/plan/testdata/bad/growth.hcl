plan "growth" {}

target "t" {
  driver    = "redis"
  endpoints = ["127.0.0.1:6379"]
}

dataset "d" {
  keys { count = 10 }
  values { size = 10 }
}

phase "open" {
  target  = target.t
  dataset = dataset.d
  ops     = { put = 1 }
  open {
    rate     = "1k/s"
    duration = "5s"
  }
  growth { to = 1000 }
}

phase "populate" {
  target  = target.t
  dataset = dataset.d
  populate {}
  growth {}
}

phase "nought" {
  target  = target.t
  dataset = dataset.d
  ops     = { put = 1 }
  closed { iterations = 10 }
  growth { to = 0 }
}

phase "words" {
  target  = target.t
  dataset = dataset.d
  ops     = { put = 1 }
  closed {
    iterations = 10
    duration   = "1s"
  }
  growth { up_to = 10 }
}

phase "less" {
  target  = target.t
  dataset = dataset.d
  ops     = { put = 1 }
  closed { iterations = 10 }
  growth { to = -1 }
}

phase "trace" {
  target  = target.t
  dataset = dataset.d
  closed {
    trace { file = "trace.csv" }
  }
  growth {}
}
