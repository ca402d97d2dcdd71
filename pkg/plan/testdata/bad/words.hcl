plan "words" {
  descripton = "a slip of the pen"
}

variabel "x" { default = 1 }

target "t" {
  driver    = "redsi"
  endpoints = ["127.0.0.1:7001"]
}

target "u" {
  driver    = "redis"
  endpoints = ["127.0.0.1:7001"]
  databse   = 3
  pipelines = 3
}

dataset "d" {
  key { count = 10 }
  values { sise = 10 }
}

phase "put" {
  target  = target.t
  dataset = dataset.e
  ops     = { putt = 1 }
  closed {
    sessions  = 10
    iteratons = 1000
  }
}

phase "put" {
  target  = target.u
  dataset = dataset.d
  ops     = { put = 1 }
  closed { iterations = 1 }
}

phase "9lives" {}

phase "two" "names" {}

phase "three" {
  target  = target.t
  dataset = dataset.d
  ops     = { put = 1 }
  close { iterations = 1 }
}
