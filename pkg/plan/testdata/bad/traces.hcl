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

phase "openloop" {
  target    = target.t
  dataset   = dataset.d
  hit_ratio = 0.9
  open {
    trace {
      file = "a.csv"
      loop = true
    }
  }
}

phase "speed" {
  target    = target.t
  dataset   = dataset.d
  ops       = { get = 1 }
  hit_ratio = 0.9
  batch     = 4
  closed {
    trace {
      form  = "parquet"
      speed = 2
    }
  }
}

phase "endless" {
  target  = target.t
  dataset = dataset.d
  closed {
    trace {
      file = "a.csv"
      loop = true
    }
  }
}

phase "bounds" {
  target  = target.t
  dataset = dataset.d
  closed {
    iterations = 5
    duration   = "5s"
    warmup     = "5s"
    trace { file = "a.csv" }
  }
}

phase "rate" {
  target  = target.t
  dataset = dataset.d
  closed {
    rate = "1k/s"
    trace { file = "a.csv" }
  }
}

phase "closedlog" {
  target  = target.wal
  dataset = dataset.d
  closed {
    trace { file = "a.csv" }
  }
}

dataset "pools" {
  keys {
    count = 10
    scope = "session"
  }
  values { size = kv_bytes({ head_dim = 128 }) }
}

phase "bare" {
  target  = target.t
  dataset = dataset.d
  closed {
    duration = "1s"
    chain {}
  }
}

phase "chainless" {
  target  = target.t
  dataset = dataset.d
  closed {
    trace {
      file = "a.jsonl"
      form = "mooncake"
    }
  }
}

phase "wide" {
  target  = target.t
  dataset = dataset.d
  closed {
    pipeline = 64
    chain {
      ahead  = 129
      spread = true
    }
    trace {
      file = "a.jsonl"
      form = "mooncake"
    }
  }
}

phase "formless" {
  target  = target.wal
  dataset = dataset.d
  closed {
    chain {}
    trace { file = "a.csv" }
  }
}

phase "nowhere" {
  target  = target.wal
  dataset = dataset.pools
  open {
    chain {}
    trace {
      file = "a.jsonl"
      form = "mooncake"
    }
  }
}
