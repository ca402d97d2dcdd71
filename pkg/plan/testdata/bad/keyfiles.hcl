plan "keyfiles" {}

target "t" {
  driver = "redis"
  builtin {}
}

target "wal" { driver = "log" }

dataset "made" {
  keys {
    file   = "keys.txt"
    count  = 10
    format = "key:%d"
  }
  values { size = 24 }
}

dataset "words" {
  keys {
    file  = ""
    form  = "parquet"
    filed = "key"
  }
  values { size = 24 }
}

dataset "line" {
  keys {
    file  = "keys.txt"
    field = "key"
    scope = "session"
  }
  values { size = 24 }
}

dataset "nameless" {
  keys {
    file  = "keys.csv"
    form  = "csv"
    field = ""
    pick  = "latest"
  }
  values { size = 24 }
}

dataset "fileless" {
  keys {
    count = 10
    form  = "csv"
    field = 2
  }
  values { size = 24 }
}

dataset "d" {
  keys {
    file = "keys.json"
    form = "json"
  }
  values { size = 24 }
}

phase "made" {
  target  = target.t
  dataset = dataset.made
  populate {}
}

phase "words" {
  target  = target.t
  dataset = dataset.words
  populate {}
}

phase "line" {
  target  = target.t
  dataset = dataset.line
  populate {}
}

phase "nameless" {
  target  = target.t
  dataset = dataset.nameless
  populate {}
}

phase "fileless" {
  target  = target.t
  dataset = dataset.fileless
  populate {}
}

phase "hits" {
  target    = target.t
  dataset   = dataset.d
  ops       = { get = 1 }
  hit_ratio = 0.5
  closed { duration = "1s" }
}

phase "log" {
  target  = target.wal
  dataset = dataset.d
  ops     = { append = 1 }
  closed { duration = "1s" }
}
