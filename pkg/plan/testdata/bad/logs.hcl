plan "p" {}

target "wal" {
  driver    = "log"
  file_size = "64Mib"
}

target "on loops" {
  driver = "null"
}

target "looped" {
  driver   = "log"
  executor = "event loop"
}

target "nodes" {
  driver = "log"
  builtin {}
}

target "slots" {
  driver    = "log"
  layout    = "array"
  file_size = 8192
}

target "good" { driver = "log" }

dataset "small" {
  keys { count = 1 }
  values { size = "uniform(15B, 100B)" }
}

dataset "d" {
  keys { count = 1 }
  values {
    size = 100
    fill = "0xfff"
  }
}

dataset "checked" {
  keys { count = 1 }
  values {
    size    = 100
    checked = true
  }
}

phase "a" {
  target  = target.looped
  dataset = dataset.d
  ops     = { append = 1 }
  closed { iterations = 1 }
}

phase "b" {
  target  = target.nodes
  dataset = dataset.d
  ops     = { append = 1 }
  closed { iterations = 1 }
}

phase "c" {
  target  = target.good
  dataset = dataset.small
  ops     = { append = 1 }
  closed { iterations = 1 }
}

phase "d" {
  target  = target.good
  dataset = dataset.checked
  ops     = { append = 1, write = 1 }
  closed {
    iterations = 1
    sessions   = 1025
  }
}

phase "e" {
  target  = target.good
  dataset = dataset.d
  ops     = { append = 1, put = 1 }
  stages {
    stage {
      rate     = 1
      duration = "1s"
    }
  }
}

phase "f" {
  target  = target.slots
  dataset = dataset.d
  ops     = { write = 1 }
  search {
    slo { response_p50 = "1ms" }
  }
}

phase "g" {
  target  = target.wal
  dataset = dataset.d
  populate {}
}

phase "h" {
  target  = target.good
  dataset = dataset.d
  ops     = { append = 1 }
  bound   = phase.i
  closed { iterations = 1 }
}

phase "i" {
  target  = target.good
  dataset = dataset.d
  ops     = { append = 1 }
  bound   = phase.nowhere
  closed { iterations = 1 }
}

phase "j" {
  target  = target.good
  dataset = dataset.d
  ops     = { append = 1 }
  bound   = "raw"
  closed { iterations = 1 }
}

target "idles" {
  driver       = "log"
  idle_timeout = "1s"
}
