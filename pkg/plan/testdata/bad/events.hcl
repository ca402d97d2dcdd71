plan "bad" {}

target "cache" {
  driver    = "redis"
  endpoints = ["127.0.0.1:6379"]
}

target "other" {
  driver    = "redis"
  endpoints = ["127.0.0.1:6380"]
}

target "nodes" {
  driver = "redis"
  builtin { nodes = 2 }
}

dataset "items" {
  keys { count = 10 }
  values { size = 100 }
}

phase "fill" {
  target  = target.cache
  dataset = dataset.items
  populate {}
  event "now" {
    at = "1s"
    do = "flush"
  }
}

phase "also" {
  target  = target.other
  dataset = dataset.items
  populate {}
}

phase "read" {
  target  = target.cache
  dataset = dataset.items
  open {
    rate     = 100
    duration = "10s"
  }
  event "late" {
    at = "10s"
    do = "flush"
  }
  event "odd" {
    at = "0s"
    do = "explode"
  }
  event "elsewhere" {
    at     = "1s"
    do     = "flush"
    target = target.other
  }
  event "nowhere" {
    at     = "1s"
    do     = "flush"
    target = target.none
  }
  event "twin" {
    at = "1s"
    do = "flush"
  }
  event "twin" {
    at = "1s"
    do = "flush"
  }
  event {
    at = "1s"
    do = "flush"
  }
  event "bare" {}
  event "foreign" {
    at   = "1s"
    do   = "kill"
    node = 1
    for  = "3s"
  }
  event "long" {
    at  = "8s"
    do  = "flush"
    for = "2s"
  }
  event "slow" {
    at     = "1s"
    do     = "delay"
    target = target.nodes
  }
  event "lossy" {
    at     = "1s"
    do     = "drop"
    drop   = 2
    target = target.nodes
  }
  event "third" {
    at     = "1s"
    do     = "restart"
    node   = 2
    target = target.nodes
  }
  event "hooked" {
    at = "1s"
    do = "hook"
  }
  scenario "both" {
    step "get" {}
    step "get" {
      as     = "other"
      target = target.nodes
    }
  }
}
