plan "verify" {}

target "space" {
  driver = "redis"
  builtin {
    nodes = 2
  }
}

target "pages" {
  driver    = "web"
  endpoints = ["127.0.0.1:8080"]
}

target "before" {
  source = target.space
  cache {
    scope  = "shared"
    memory = "1MiB"
  }
}

target "nothing" {
  driver = "null"
}

dataset "many" {
  keys { count = 5000000 }
  values {
    size    = 100
    ttl     = "3s"
    checked = false
  }
}

dataset "own" {
  keys {
    count   = 100
    writers = "one"
    scope   = "session"
  }
  values { size = 100 }
}

dataset "newest" {
  keys {
    count   = 100
    writers = "two"
    pick    = "latest"
  }
  values { size = 100 }
}

dataset "few" {
  keys {
    count   = 10
    writers = "one"
  }
  values { size = 100 }
}

phase "too-early" {
  target  = target.space
  dataset = dataset.few
  ops     = { get = 1 }
  verify {
    pipeline = 0
    sessions = 4
  }
}

phase "fill" {
  target  = target.space
  dataset = dataset.many
  populate { sessions = 3 }
}

phase "load" {
  target  = target.before
  dataset = dataset.many
  ops     = { get = 1, put = 1 }
  on_miss = "put"
  closed {
    sessions = 11
    duration = "1s"
  }
}

phase "check" {
  target  = target.before
  dataset = dataset.many
  verify {}
}

phase "put" {
  target  = target.pages
  dataset = dataset.few
  ops     = { put = 1 }
  batch   = 2
  closed {
    sessions = 11
    pipeline = 2
    duration = "1s"
  }
}

phase "put-check" {
  target  = target.pages
  dataset = dataset.few
  verify {}
}

phase "filling" {
  target  = target.nothing
  dataset = dataset.few
  ops     = { get = 1, put = 1 }
  on_miss = "put"
  closed {
    sessions = 2
    duration = "1s"
  }
}

phase "filling-check" {
  target  = target.nothing
  dataset = dataset.few
  verify {}
}

phase "others" {
  target  = target.space
  dataset = dataset.own
  ops     = { put = 1 }
  closed {
    sessions = 2
    duration = "1s"
  }
}

phase "newest" {
  target  = target.space
  dataset = dataset.newest
  ops     = { put = 1 }
  closed {
    sessions = 2
    duration = "1s"
  }
}
