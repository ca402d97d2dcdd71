plan "stops" {}

target "t" {
  driver = "redis"
  builtin {}
}

dataset "d" {
  keys { count = 10 }
  values { size = 24 }
}

phase "word" {
  target   = target.t
  dataset  = dataset.d
  ops      = { put = 1 }
  on_error = "abort"
  closed { iterations = 1 }
}

phase "contradiction" {
  target     = target.t
  dataset    = dataset.d
  ops        = { put = 1 }
  on_error   = "continue"
  stop_after = 10
  closed { iterations = 1 }
}

phase "zero" {
  target     = target.t
  dataset    = dataset.d
  ops        = { put = 1 }
  stop_after = 0
  closed { iterations = 1 }
}

phase "all" {
  target     = target.t
  dataset    = dataset.d
  ops        = { put = 1 }
  stop_after = "100%"
  closed { iterations = 1 }
}

phase "half" {
  target     = target.t
  dataset    = dataset.d
  ops        = { put = 1 }
  stop_after = 1.5
  closed { iterations = 1 }
}

phase "text" {
  target     = target.t
  dataset    = dataset.d
  ops        = { put = 1 }
  stop_after = "100"
  closed { iterations = 1 }
}

phase "fill" {
  target   = target.t
  dataset  = dataset.d
  on_error = "stop"
  populate {}
}

phase "search" {
  target     = target.t
  dataset    = dataset.d
  ops        = { put = 1 }
  stop_after = 10
  search {
    slo { response_p99 = "5ms" }
  }
}
