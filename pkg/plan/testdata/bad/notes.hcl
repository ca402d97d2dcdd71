plan "notes" {}

target "t" {
  driver    = "redis"
  endpoints = ["127.0.0.1:6379"]
  op "login" {
    request { words = ["LOGIN", "{row.user}"] }
    capture = { token = "reply" }
  }
  op "make" {
    request { words = ["MAKE", "{captured.token}"] }
    capture = { id = "reply" }
  }
  op "show" {
    request { words = ["SHOW", "{captured.id}", "{captured.tokn}"] }
  }
}

dataset "plain" {
  keys { count = 10 }
  values { size = 10 }
}

dataset "drawn" {
  rows {
    file = "users.csv"
    loop = true
  }
}

dataset "nameless" {
  rows { pick = "each" }
}

phase "no-rows" {
  target  = target.t
  dataset = dataset.plain
  setup {
    step "login" {}
  }
  scenario "order" {
    step "make" {}
    step "show" {}
  }
  closed { iterations = 1 }
}

phase "another-row" {
  target  = target.t
  dataset = dataset.drawn
  setup {
    step "login" {}
    ops = { login = 1 }
  }
  ops = { make = 1 }
  closed { iterations = 1 }
}

phase "too-late" {
  target  = target.t
  dataset = dataset.drawn
  scenario "order" {
    step "make" {}
    step "login" {}
  }
  closed { iterations = 1 }
}

phase "once" {
  target  = target.t
  dataset = dataset.nameless
  setup {
    step "logn" { times = 2 }
  }
  ops = { show = 1 }
  closed { iterations = 1 }
}

phase "mix" {
  target  = target.t
  dataset = dataset.plain
  ops     = { show = 1 }
  closed { iterations = 1 }
}
