plan "recorded" {}
variable "side" { default = "a" }
target "cache" {
  driver = "redis"
  builtin { nodes = 1 }
}
dataset "items" {
  keys { count = 1000 }
  values { size = 200 }
}
phase "fill" {
  target  = target.cache
  dataset = dataset.items
  populate {}
}
phase "load" {
  target  = target.cache
  dataset = dataset.items
  ops     = { get = 1 }
  closed {
    sessions = 4
    duration = "20s"
  }
}
experiment {
  repeat = 6
  variant "a" { side = "a" }
  variant "b" { side = "b" }
}
