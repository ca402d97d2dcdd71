plan "bad" {}

target "db" {
  driver    = "redis"
  endpoints = ["127.0.0.1:6379"]
}

target "near" {
  driver    = "redis"
  endpoints = ["127.0.0.1:6380"]
}

target "bare" {
  source = target.db
}

target "orphan" {
  driver    = "redis"
  endpoints = ["127.0.0.1:6381"]
  cache { memory = "1MiB" }
}

target "itself" {
  source = target.db
  cache {
    scope  = "remote"
    target = target.db
  }
}

target "nowhere" {
  source = target.db
  cache { scope = "remote" }
}

target "loop" {
  source = target.loop
  cache { memory = "1MiB" }
}

target "words" {
  source = target.db
  driver = "redis"
  cache {
    scope          = "global"
    target         = target.near
    full           = "throw"
    on_put         = "forget"
    on_cache_error = "panic"
    rollback       = 2
    ttl            = "1us"
  }
}

target "roomless" {
  source = target.db
  cache { scope = "session" }
}

target "small" {
  source = target.db
  cache {
    scope    = "session"
    memory   = "1KiB"
    rollback = "1%"
  }
}

target "good" {
  source = target.db
  cache { memory = "1MiB" }
}

dataset "plain" {
  keys { count = 10 }
  values { size = 100 }
}

phase "small" {
  target  = target.small
  dataset = dataset.plain
  ops     = { get = 1 }
  closed {
    sessions   = 20
    iterations = 1
  }
}

phase "batches" {
  target  = target.good
  dataset = dataset.plain
  ops     = { get = 1 }
  batch   = 5
  closed { iterations = 1 }
}

phase "fills" {
  target  = target.good
  dataset = dataset.plain
  ops     = { get = 1 }
  on_miss = "put"
  closed { iterations = 1 }
}
