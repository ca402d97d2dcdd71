plan "skipped" {}

target "t" { driver = "null" }

dataset "d" {
  keys { count = 1 }
  values { size = 1 }
}

phase "only" {
  target  = target.t
  dataset = dataset.d
  when    = 1 > 2
  ops     = { get = 1 }
  closed { iterations = 1 }
}
