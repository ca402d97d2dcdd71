plan "p" {}

target "t" {
  driver    = "redis"
  endpoints = ["a:1", "b:1"]
  placement = "modulo"
}

dataset "d" {
  keys { count = 1 }
  values { size = 1 }
}

phase "a" {
  target  = target.t
  dataset = dataset.d
  populate {}
}
