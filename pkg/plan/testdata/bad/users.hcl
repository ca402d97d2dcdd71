plan "p" {}
target "t" { driver = "null" }
dataset "d" {
  keys { count = 10 }
  values { size = 10 }
}
phase "refused" {
  target  = target.t
  dataset = dataset.d
  ops     = { get = 1 }
  slo { response_p99 = "5ms" }
  stages {
    sessions  = 5
    in_flight = 7
    think     = "exponential(2s)"
    stage {
      sessions = 10
      duration = "10s"
      ramp     = "20s"
    }
  }
}
phase "mixed" {
  target  = target.t
  dataset = dataset.d
  stages {
    think = "lognormal(2s, 9, 20s)"
    stage {
      sessions = 10
      duration = "10s"
    }
    stage {
      rate     = "10/s"
      duration = "10s"
    }
  }
  scenario "s" {
    step "get" {
      slo {
        op           = "get"
        response_p95 = 300
      }
    }
    step "get" { think = "exp(1s, 2s)" }
  }
}
phase "open" {
  target  = target.t
  dataset = dataset.d
  ops     = { get = 1 }
  stages {
    think = "1s"
    stage {
      rate     = "10/s"
      duration = "10s"
    }
  }
}
