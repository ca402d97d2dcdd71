plan "p" {}

variable "one" { default = "64B" }

target "array" {
  driver = "log"
  layout = "array"
}

target "pools" {
  driver = "log"
  layout = "array"
}

target "wal" { driver = "log" }

target "bytes" {
  driver = "log"
  layout = "channel"
}

target "short" { driver = "log" }

dataset "few" {
  keys { count = 10 }
  values { size = var.one }
}

dataset "many" {
  keys { count = 20 }
  values { size = "128B" }
}

dataset "drawn" {
  keys { count = 10 }
  values { size = "uniform(32B, 64B)" }
}

dataset "own" {
  keys {
    count = 10
    scope = "session"
  }
  values { size = 64 }
}

dataset "none" {
  keys { count = 1 }
  values { size = 0 }
}

dataset "large" {
  keys { count = 1 }
  values { size = "8KiB" }
}

phase "a" {
  target  = target.array
  dataset = dataset.few
  ops     = { write = 1 }
  closed { iterations = 1 }
}

phase "b" {
  target  = target.array
  dataset = dataset.many
  ops     = { read = 1 }
  closed { iterations = 1 }
}

phase "c" {
  target  = target.pools
  dataset = dataset.own
  ops     = { append = 1 }
  closed {
    sessions   = 2
    iterations = 1
  }
}

phase "d" {
  target  = target.pools
  dataset = dataset.own
  ops     = { append = 1 }
  closed {
    sessions   = 3
    iterations = 1
  }
}

phase "e" {
  target  = target.wal
  dataset = dataset.none
  ops     = { read = 1 }
  closed { iterations = 1 }
}

phase "f" {
  target  = target.short
  dataset = dataset.large
  ops     = { append = 1 }
  closed { iterations = 1 }
}

phase "g" {
  target  = target.pools
  dataset = dataset.few
  ops     = { write = 1 }
  closed { iterations = 1 }
}

phase "h" {
  target  = target.bytes
  dataset = dataset.few
  ops     = { append = 1 }
  closed { iterations = 1 }
}

phase "i" {
  target  = target.bytes
  dataset = dataset.many
  ops     = { read = 1 }
  closed { iterations = 1 }
}

phase "j" {
  target  = target.bytes
  dataset = dataset.drawn
  ops     = { append = 1 }
  closed { iterations = 1 }
}
