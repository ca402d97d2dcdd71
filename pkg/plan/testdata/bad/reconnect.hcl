plan "reconnect" {}

target "t" {
  driver    = "redis"
  endpoints = ["127.0.0.1:6379"]
}

target "nowhere" { driver = "null" }

dataset "d" {
  keys { count = 10 }
  values { size = 10 }
}

phase "neither" {
  target  = target.t
  dataset = dataset.d
  ops     = { get = 1 }
  closed {
    iterations = 10
    reconnect {}
  }
}

phase "both" {
  target  = target.t
  dataset = dataset.d
  ops     = { get = 1 }
  open {
    rate     = 10
    duration = "1s"
    reconnect {
      ops    = 10
      every  = "5s"
      jitter = 2
    }
  }
}

phase "too-few" {
  target  = target.t
  dataset = dataset.d
  ops     = { get = 1 }
  closed {
    iterations = 10
    reconnect {
      ops    = -1
      jitter = 0.5
    }
  }
}

phase "too-short" {
  target  = target.t
  dataset = dataset.d
  ops     = { get = 1 }
  closed {
    iterations = 10
    reconnect { every = "1us" }
  }
}

phase "no-connections" {
  target  = target.nowhere
  dataset = dataset.d
  ops     = { get = 1 }
  closed {
    iterations = 10
    reconnect { ops = 1 }
  }
}

phase "not-a-load" {
  target  = target.t
  dataset = dataset.d
  populate {
    reconnect { ops = 1 }
  }
}
