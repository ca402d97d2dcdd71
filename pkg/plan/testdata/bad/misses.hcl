plan "bad" {}

target "t" {
  driver = "redis"
  builtin {}
}

target "wal" { driver = "log" }

dataset "plain" {
  keys { count = 10 }
  values { size = 100 }
}

dataset "lists" {
  keys {
    count = 1
    scope = "session"
  }
  values {
    record = { members = "grow(uuid)" }
  }
}

phase "words" {
  target  = target.t
  dataset = dataset.plain
  ops     = { get = 1 }
  on_miss = "load"
  closed { iterations = 1 }
}

phase "fill" {
  target  = target.t
  dataset = dataset.plain
  on_miss = "put"
  populate {}
}

phase "puts" {
  target  = target.t
  dataset = dataset.plain
  ops     = { put = 1 }
  on_miss = "put"
  closed { iterations = 1 }
}

phase "ratio" {
  target    = target.t
  dataset   = dataset.plain
  ops       = { get = 1 }
  hit_ratio = "90%"
  on_miss   = "put"
  closed { iterations = 1 }
}

phase "batches" {
  target  = target.t
  dataset = dataset.plain
  ops     = { get = 1 }
  batch   = 10
  on_miss = "put"
  closed { iterations = 1 }
}

phase "files" {
  target  = target.wal
  dataset = dataset.plain
  ops     = { get = 1 }
  on_miss = "put"
  closed { iterations = 1 }
}

phase "lists" {
  target  = target.t
  dataset = dataset.lists
  on_miss = "put"
  ops = {
    get = 1
    put = 1
  }
  closed { iterations = 1 }
}
