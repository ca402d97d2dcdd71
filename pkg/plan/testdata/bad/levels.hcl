plan "levels" {}

target "t" {
  driver    = "redis"
  endpoints = ["127.0.0.1:7001"]
}

dataset "d" {
  keys { count = 10 }
  values { size = 24 }
}

dataset "once" {
  keys {
    pick  = "sequence"
    count = 10
  }
  values { size = 24 }
}

phase "bare" {
  target  = target.t
  dataset = dataset.d
  ops     = { get = 1 }
  stages {}
}

phase "stages" {
  target  = target.t
  dataset = dataset.d
  ops     = { get = 1 }
  stages {
    rate     = "1k/s"
    sessions = 0
    stage {
      rate     = "1k/s"
      duration = "10s"
      sessions = 3
    }
    stage { duration = "1s" }
    stage {
      rate     = 0
      duration = "1s"
      ramp     = "2s"
    }
    stage "last" {}
  }
}

phase "walk" {
  target  = target.t
  dataset = dataset.once
  ops     = { get = 1 }
  stages {
    stage {
      rate     = "1k/s"
      duration = "10s"
    }
  }
}

phase "aimless" {
  target  = target.t
  dataset = dataset.d
  ops     = { get = 1 }
  search {}
}

phase "search" {
  target  = target.t
  dataset = dataset.d
  ops     = { get = 9, put = 1 }
  search {
    from          = "2k/s"
    to            = "1k/s"
    step_duration = "5ms"
    precision     = 2
    budget        = "1ms"
    slo {}
    slo { p99 = "5ms" }
    slo {
      op           = "delete"
      response_p99 = "5ms"
    }
    slo {
      op            = "put"
      response_p50  = 9000000
      response_p999 = "5ms"
    }
    slo {
      op            = "put"
      response_p975 = "5ms"
    }
  }
}

phase "both" {
  target  = target.t
  dataset = dataset.d
  ops     = { get = 1 }
  open {
    rate     = 1
    duration = 1
  }
  search {
    slo { response_p99 = "5ms" }
  }
}
