plan "staleness" {}

target "space" {
  driver    = "redis"
  endpoints = ["127.0.0.1:7001"]
}

dataset "many" {
  keys { count = 3000000 }
  values {
    size    = 100
    ttl     = "3s"
    checked = false
  }
}

dataset "one" {
  keys {
    count   = 1000
    writers = "one"
  }
  values { size = 100 }
}

phase "several" {
  target  = target.space
  dataset = dataset.many
  ops     = { get = 1, put = 1 }
  staleness {
    of = 3
  }
  closed {
    sessions = 16
    duration = "1s"
  }
}

phase "fill" {
  target  = target.space
  dataset = dataset.one
  staleness {}
  populate { sessions = 5 }
}

phase "puts" {
  target  = target.space
  dataset = dataset.one
  ops     = { put = 1 }
  staleness {}
  closed {
    sessions = 5
    duration = "1s"
  }
}

phase "steps" {
  target  = target.space
  dataset = dataset.one
  staleness {}
  scenario "both" {
    step "get" {}
    step "put" {}
  }
  closed {
    sessions = 5
    duration = "1s"
  }
}
