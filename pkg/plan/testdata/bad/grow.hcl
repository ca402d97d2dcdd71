plan "grow" {}

target "t" {
  driver    = "redis"
  endpoints = ["127.0.0.1:6379"]
}

dataset "parent" {
  keys {
    count = 1
    scope = "session"
  }
  values {
    record = { members = "grow(uuid)" }
  }
}

dataset "endless" {
  keys { count = 1 }
  values {
    record = { members = "grow(uuid)" }
  }
}

dataset "many" {
  keys { count = 10 }
  values {
    record = { members = "grow(uuid)" }
  }
}

dataset "huge" {
  keys { count = 1 }
  values {
    record = { members = "grow(lorem(1000))" }
  }
}

phase "good" {
  target  = target.t
  dataset = dataset.parent
  ops     = { put = 1 }
  closed {
    sessions   = 4
    iterations = 100
  }
}

phase "endless" {
  target  = target.t
  dataset = dataset.endless
  ops     = { put = 1 }
  closed { duration = "1s" }
}

phase "many" {
  target  = target.t
  dataset = dataset.many
  ops     = { put = 1 }
  closed { iterations = 100 }
}

phase "huge" {
  target  = target.t
  dataset = dataset.huge
  ops     = { put = 1 }
  closed { iterations = 1000000 }
}
