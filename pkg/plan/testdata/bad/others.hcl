# Words of other tools, and ours in the wrong place.
plan "others" {
  duration = "10s"
}

vus = 10

op "visit" {
  sql = "SELECT 1"
}

closed { sessions = 10 }

target "valkey" {
  driver = "valkey"
  host   = "localhost"
}

target "http" {
  driver    = "https"
  endpoints = ["127.0.0.1:80"]
}

target "t" {
  driver      = "redis"
  protocol    = "resp3"
  connections = 50
  endpoints   = ["127.0.0.1:6379"]
}

dataset "zipfian" {
  keyspace = 1000
  keys {
    count = 10
    pick  = "zipfian"
  }
  values { size = 10 }
}

dataset "d" {
  keys {
    count        = "10kk"
    distribution = "gaussian"
  }
  values { payload = 10 }
}

dataset "counts" {
  keys { count = "1.5" }
  values { size = 10 }
}

phase "stages-in-open" {
  target  = target.t
  dataset = dataset.d
  ops     = { set = 1, del = 1, incr = 1 }
  open {
    rate     = "1k/s"
    duration = "10s"
    arrivals = "exponential"
    stages {
      stage {
        target   = 10
        duration = "10s"
      }
    }
  }
}

phase "get" {
  target  = target.t
  dataset = dataset.d
  get { iterations = 10 }
}

phase "k6" {
  target     = target.t
  dataset    = dataset.d
  ops        = { get = 1 }
  executor   = "constant-vus"
  thresholds = { http_req_duration = ["p(95)<500"] }
  ramp       = "10s"
  think_time = "1s"
  closed {
    vus      = 10
    rate     = "1k/s"
    requests = 1000
    duration = "10s"
  }
}

phase "search" {
  target  = target.t
  dataset = dataset.d
  ops     = { get = 1 }
  search {
    slo { p95 = "5ms" }
  }
}

threshold "fast" {
  that = "p(95)<500"
}

assert "fast" {
  that = "p(95)<500"
}
