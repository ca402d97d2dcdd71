plan "p" {}
target "t" { driver = "null" }
target "spare" {
  driver = "redis"
  builtin { nodes = 5000 }
}
dataset "d" {
  keys { count = 10 }
  values { size = 10 }
}
dataset "spare" {
  keys { count = 0 }
  values { size = 10 }
}
phase "p" {
  target  = target.t
  dataset = dataset.d
  ops     = { put = 1 }
  closed { iterations = 2 }
}
