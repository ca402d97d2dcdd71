plan "models" {}

target "t" {
  driver = "redis"
  builtin {}
}

dataset "d" {
  keys { count = 10 }
  values { size = 24 }
}

dataset "pools" {
  keys {
    count = 10
    scope = "session"
  }
  values { size = 24 }
}

dataset "once" {
  keys {
    count = 10
    pick  = "sequence"
  }
  values { size = 24 }
}

phase "none" {
  target  = target.t
  dataset = dataset.d
  ops     = { put = 1 }
}

phase "two" {
  target  = target.t
  dataset = dataset.d
  ops     = { put = 1 }
  closed { iterations = 1 }
  populate {}
}

phase "endless" {
  target  = target.t
  dataset = dataset.d
  ops     = { put = 1 }
  closed {}
}

phase "both" {
  target  = target.t
  dataset = dataset.d
  ops     = { put = 1 }
  closed {
    iterations = 1
    duration   = "1s"
  }
}

phase "shared setup" {}

phase "setup" {
  target  = target.t
  dataset = dataset.d
  ops     = { get = 1 }
  setup { ops = { put = 1 } }
  closed { iterations = 1 }
}

phase "gets-in-setup" {
  target  = target.t
  dataset = dataset.pools
  ops     = { get = 1 }
  setup { ops = { get = 1 } }
  closed { iterations = 1 }
}

phase "fill" {
  target  = target.t
  dataset = dataset.pools
  populate {}
}

phase "sequence-open" {
  target  = target.t
  dataset = dataset.once
  ops     = { put = 1 }
  open {
    rate     = 1
    duration = "1s"
  }
}

phase "sequence-long" {
  target  = target.t
  dataset = dataset.once
  ops     = { put = 1 }
  closed {
    sessions   = 4
    iterations = 3
  }
}

phase "no-gets" {
  target      = target.t
  dataset     = dataset.d
  ops         = { put = 1 }
  expect_hits = 0.5
  closed { iterations = 1 }
}

phase "fill-and-get" {
  target  = target.t
  dataset = dataset.d
  ops     = { get = 1 }
  populate { sessions = 0 }
}

phase "wrong-form" {
  target  = "t"
  dataset = dataset.d
  closed  = { iterations = 1 }
  ops {
    put = 1
  }
}

phase "no-such-name" {
  target  = target["u${1 + 1}"]
  dataset = dataset[1]
  ops     = { put = 1 }
  closed { iterations = 1 }
}

phase "no-name" {
  target  = target[var.gone]
  dataset = dataset[null]
  ops     = { put = 1 }
  closed { iterations = 1 }
}
