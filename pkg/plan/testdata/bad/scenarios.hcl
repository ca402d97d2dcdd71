plan "scenarios" {}

target "t" {
  driver = "redis"
  builtin {}
}

target "wal" { driver = "log" }

dataset "d" {
  keys { count = 10 }
  values { size = 24 }
}

dataset "once" {
  keys {
    count = 10
    pick  = "sequence"
  }
  values { size = 24 }
}

phase "words" {
  target  = target.t
  dataset = dataset.d
  scenario { weight = 1 }
  scenario "typo" {
    wieght = 3
    step "gett" {}
    step {}
    step "put" { key = "other" }
  }
  closed { iterations = 1 }
}

phase "order" {
  target  = target.t
  dataset = dataset.d
  scenario "first" {
    step "get" {
      key   = "same"
      think = "1s"
    }
  }
  scenario "empty" {}
  scenario "light" {
    weight = 0
    step "get" {}
  }
  scenario "light" {
    step "get" {}
  }
  closed { iterations = 1 }
}

phase "twice" {
  target  = target.t
  dataset = dataset.d
  ops     = { get = 1 }
  scenario "get" {
    step "get" {}
    step "put" {}
  }
  closed { iterations = 1 }
}

phase "walk" {
  target  = target.t
  dataset = dataset.once
  scenario "two" {
    step "get" {}
    step "put" {}
  }
  closed { sessions = 1 }
}

phase "fill" {
  target  = target.t
  dataset = dataset.d
  scenario "put" {
    step "put" {}
  }
  populate {}
}

phase "log" {
  target  = target.wal
  dataset = dataset.d
  scenario "s" {
    step "append" {}
  }
  closed { iterations = 1 }
}
