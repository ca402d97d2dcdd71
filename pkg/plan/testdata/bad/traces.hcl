plan "traces" {}

target "t" {
  driver = "redis"
  builtin {}
}

target "wal" { driver = "log" }

dataset "d" {
  keys { count = 10 }
  values { size = 24 }
}

phase "words" {
  target  = target.t
  dataset = dataset.d
  ops     = { get = 1 }
  open {
    duration = "1m"
    trace {
      flie  = "a.csv"
      form  = "parquet"
      speed = 0
    }
  }
}

phase "both" {
  target  = target.t
  dataset = dataset.d
  open {
    rate = "1k/s"
    trace {
      file  = "a.csv"
      speed = 2
    }
  }
}

phase "log" {
  target  = target.wal
  dataset = dataset.d
  open {
    trace { file = "a.csv" }
  }
}
