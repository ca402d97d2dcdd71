plan "steps" {}

target "a" {
  driver    = "redis"
  endpoints = ["a:1"]
}

target "b" {
  driver    = "redis"
  endpoints = ["b:1"]
}

target "wal" { driver = "log" }

dataset "items" {
  keys { count = 100 }
  values { size = 100 }
}

dataset "fewer" {
  keys { count = 10 }
  values { size = 100 }
}

dataset "pools" {
  keys {
    count = 100
    scope = "session"
  }
  values { size = 100 }
}

dataset "checked" {
  keys { count = 100 }
  values {
    size    = 100
    checked = true
  }
}

dataset "unchecked" {
  keys { count = 100 }
  values {
    size    = 100
    checked = false
  }
}

dataset "once" {
  keys {
    count = 100
    pick  = "sequence"
  }
  values { size = 100 }
}

dataset "growing" {
  keys {
    count = 100
    pick  = "latest"
  }
  values { size = 100 }
}

phase "words" {
  target  = target.a
  dataset = dataset.items
  scenario "typos" {
    step "get" { targt = target.b }
    step "get" { target = target.c }
    step "get" { target = "b" }
    step "get" { target = dataset.items }
    step "get" { dataset = dataset.itmes }
    step "get" { dataset = 3 }
    step "get" { as = "9 lives" }
    step "get" { as = 3 }
    step "get" { key = "old" }
    step "get" { key = true }
    step "get" { think = "-1s" }
  }
  closed { iterations = 1 }
}

phase "numbers" {
  target  = target.a
  dataset = dataset.items
  scenario "times" {
    step "get" { times = 0 }
    step "get" { times = -1 }
    step "get" { times = 65 }
    step "get" { times = 1.5 }
    step "get" { times = "twice" }
    step "get" { when = "maybe" }
    step "get" { when = 1 }
    step "get" { when = nothing }
  }
  scenario "none" {
    step "get" { when = false }
  }
  scenario "long" {
    step "get" { times = 60 }
    step "put" { times = 5 }
  }
  closed { iterations = 1 }
}

phase "names" {
  target  = target.a
  dataset = dataset.items
  scenario "same" {
    step "get" { as = "read" }
    step "put" { as = "read" }
    step "get" {}
    step "get" { as = "get" }
  }
  closed { iterations = 1 }
}

phase "keys" {
  target  = target.a
  dataset = dataset.items
  scenario "counts" {
    step "get" {}
    step "put" {
      dataset = dataset.fewer
      key     = "same"
    }
  }
  scenario "scopes" {
    step "get" {}
    step "put" {
      dataset = dataset.pools
      key     = "same"
    }
  }
  scenario "grown" {
    step "get" {}
    step "put" {
      dataset = dataset.growing
      key     = "same"
    }
  }
  scenario "walked" {
    step "get" {}
    step "put" { dataset = dataset.once }
    step "put" {
      as      = "later"
      dataset = dataset.growing
    }
  }
  closed { iterations = 1 }
}

phase "values" {
  target  = target.a
  dataset = dataset.items
  scenario "mixed" {
    step "put" {
      target  = target.b
      dataset = dataset.checked
    }
    step "put" {
      target  = target.b
      dataset = dataset.unchecked
      as      = "plain"
    }
  }
  closed { iterations = 1 }
}

phase "logs" {
  target  = target.a
  dataset = dataset.items
  scenario "both" {
    step "get" {}
    step "append" { target = target.wal }
  }
  closed { iterations = 1 }
}

phase "verbs" {
  target  = target.a
  dataset = dataset.items
  scenario "s" {
    step "get" {}
    step "append" { target = target.b }
  }
  closed { iterations = 1 }
}

phase "setup" {
  target  = target.a
  dataset = dataset.items
  batch   = 4
  scenario "s" {
    step "get" {}
    step "put" { target = target.b }
  }
  closed { iterations = 1 }
}
