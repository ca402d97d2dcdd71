plan "ops" {}

target "t" {
  driver    = "redis"
  endpoints = ["127.0.0.1:7001"]
  op "visit" {
    request { words = ["INCR", "{key}"] }
  }
  op "visit" {
    request { words = ["INCR", "{key}"] }
  }
  op "typo" {
    request { words = ["GET", "{kye}", "{"] }
  }
  op "nothing" {}
  op "unknown" {
    request {
      words = ["GET"]
      word  = 1
    }
    expects {}
  }
  op "slow" {
    request {
      words  = ["GET"]
      within = 3
    }
  }
  op "append" {
    request { words = ["APPEND", "{key}"] }
  }
  op "get" {
    request { words = ["GETSET", "{key}", "{value}"] }
  }
  op "delete" {
    request { words = ["FLUSHALL"] }
  }
  op "9lives" {
    request { words = ["PING"] }
  }
  op "born" {
    request { words = ["SET", "{key}", "{field.brn}"] }
  }
  op {
    request { words = ["PING"] }
  }
}

target "shared" {
  driver    = "redis"
  endpoints = ["127.0.0.1:7001"]
  cluster   = true
  op "ping" {
    request { words = ["PING"] }
  }
}

target "copies" {
  driver    = "redis"
  endpoints = ["127.0.0.1:7001"]
  op "put" {
    request { words = ["SET", "{key}", "{value}"] }
  }
  replication {
    n = 1
    w = 1
    r = 1
  }
}

target "n" {
  driver    = "null"
  endpoints = ["n0"]
  op "visit" {}
}

dataset "d" {
  keys { count = 10 }
  values {
    record = { born = "date" }
    ttl    = "10s"
  }
}

phase "words" {
  target  = target.t
  dataset = dataset.d
  ops     = { vist = 1, get = 1 }
  closed { iterations = 1 }
}

phase "other" {
  target  = target.copies
  dataset = dataset.d
  ops     = { visit = 1, put = 1 }
  closed { iterations = 1 }
}

phase "field" {
  target  = target.t
  dataset = dataset.d
  ops     = { born = 1 }
  batch   = 4
  closed { iterations = 1 }
}

phase "step" {
  target  = target.shared
  dataset = dataset.d
  scenario "s" {
    step "ping" {}
    step "vissit" {}
    step "visit" {}
  }
  closed { iterations = 1 }
}

phase "null" {
  target  = target.n
  dataset = dataset.d
  ops     = { visit = 1 }
  closed { iterations = 1 }
}
