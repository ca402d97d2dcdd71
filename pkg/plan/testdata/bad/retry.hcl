plan "retry" {}

target "none" {
  driver    = "redis"
  retries   = 3
  endpoints = ["127.0.0.1:6379"]
  retry { attempts = 0 }
}

target "unsaid" {
  driver    = "redis"
  endpoints = ["127.0.0.1:6380"]
  retry {}
}

target "wild" {
  driver    = "redis"
  endpoints = ["127.0.0.1:6381"]
  retry {
    attempts = 11
    backoff  = "2m"
    jitter   = 1.5
    on       = ["timeout", "miss", "timeout"]
  }
}

target "eager" {
  driver    = "redis"
  endpoints = ["127.0.0.1:6382"]
  retry {
    attempts = 3
    jitter   = 0.5
    on       = []
  }
}

target "copies" {
  driver = "redis"
  builtin { nodes = 3 }
  retry { attempts = 3 }
  replication {
    n = 3
    w = 2
    r = 2
  }
}

target "own" {
  driver    = "redis"
  endpoints = ["127.0.0.1:6383"]
  retry { attempts = 3 }
  op "visit" {
    request { words = ["INCR", "{key}"] }
  }
  op "again" {
    request { words = ["SET", "{key}", "a"] }
    repeat = true
  }
}

target "front" {
  source = target.own
  cache { memory = "1MiB" }
  retry { attempts = 3 }
}

target "log" {
  driver = "log"
  retry { attempts = 3 }
}

target "again" {
  driver    = "redis"
  endpoints = ["127.0.0.1:6384"]
  retry { attempts = 3 }
}

dataset "one" {
  keys {
    count   = 1000
    writers = "one"
  }
  values { size = 100 }
}

phase "many" {
  target  = target.again
  dataset = dataset.one
  ops     = { get = 1 }
  batch   = 4
  retry { attempts = 3 }
  closed { duration = "1s" }
}

phase "load" {
  target  = target.again
  dataset = dataset.one
  ops     = { get = 1, put = 1 }
  staleness {}
  closed {
    sessions = 4
    pipeline = 8
    duration = "1s"
  }
}
