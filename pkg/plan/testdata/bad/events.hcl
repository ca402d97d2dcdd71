plan "bad" {}

target "cache" {
  driver    = "redis"
  endpoints = ["127.0.0.1:6379"]
}

target "other" {
  driver    = "redis"
  endpoints = ["127.0.0.1:6380"]
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
  ops     = { get = 1 }
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
}
