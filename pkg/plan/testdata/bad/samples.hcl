plan "samples" {}

target "t" {
  driver    = "redis"
  endpoints = ["127.0.0.1:6379"]
}

dataset "d" {
  keys { count = 10 }
  values { size = 10 }
}

phase "populate" {
  target  = target.t
  dataset = dataset.d
  samples = 100
  populate {}
}

phase "clear" {
  target  = target.t
  dataset = dataset.d
  samples = 100
  clear {}
}

phase "nought" {
  target  = target.t
  dataset = dataset.d
  samples = 0
  ops     = { put = 1 }
  closed { iterations = 10 }
}

phase "less" {
  target  = target.t
  dataset = dataset.d
  samples = -1
  ops     = { put = 1 }
  closed { iterations = 10 }
}

phase "more" {
  target  = target.t
  dataset = dataset.d
  samples = 100001
  ops     = { put = 1 }
  closed { iterations = 10 }
}

phase "text" {
  target  = target.t
  dataset = dataset.d
  samples = "10%"
  ops     = { put = 1 }
  closed { iterations = 10 }
}
