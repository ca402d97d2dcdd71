plan "values" {}

target "t" {
  driver    = "redis"
  endpoints = ["127.0.0.1:7001"]
}

locals {
  bad = {
    turned   = "uniform(10B, 5B)"
    word     = "normal(10B, 5B)"
    few      = "uniform(10B)"
    unit     = "uniform(10, 5 apples)"
    sigma    = "lognormal(1KiB, much, 64KiB)"
    none     = "lognormal(1KiB, 0, 64KiB)"
    median   = "lognormal(1MiB, 1, 64KiB)"
    negative = { "10B" = -1 }
    weight   = { "10B" = "much" }
    twice    = { "1KiB" = 1, "1024B" = 1 }
    name     = { small = 1 }
    empty    = {}
    checked  = { 10 = 1, 1000 = 1 }
    huge     = "uniform(1B, 1GiB)"
  }
}

dataset "a" {
  keys { count = 1 }
  values { size = local.bad.turned }
}

dataset "b" {
  keys { count = 1 }
  values { size = local.bad.word }
}

dataset "c" {
  keys { count = 1 }
  values { size = local.bad.few }
}

dataset "d" {
  keys { count = 1 }
  values { size = local.bad.unit }
}

dataset "e" {
  keys { count = 1 }
  values { size = local.bad.sigma }
}

dataset "f" {
  keys { count = 1 }
  values { size = local.bad.none }
}

dataset "g" {
  keys { count = 1 }
  values { size = local.bad.median }
}

dataset "h" {
  keys { count = 1 }
  values { size = local.bad.negative }
}

dataset "i" {
  keys { count = 1 }
  values { size = local.bad.weight }
}

dataset "j" {
  keys { count = 1 }
  values { size = local.bad.twice }
}

dataset "k" {
  keys { count = 1 }
  values { size = local.bad.name }
}

dataset "l" {
  keys { count = 1 }
  values { size = local.bad.empty }
}

dataset "m" {
  keys { count = 1 }
  values {
    size    = local.bad.checked
    checked = true
  }
}

dataset "n" {
  keys { count = 1 }
  values { size = local.bad.huge }
}

dataset "o" {
  keys { count = 1 }
  values {
    size            = 10
    fill            = "0xff"
    compressibility = "50%"
  }
}

dataset "p" {
  keys { count = 1 }
  values {
    size            = 10
    compressibility = "150%"
  }
}

phase "a" {
  target  = target.t
  dataset = dataset.a
  populate {}
}

phase "b" {
  target  = target.t
  dataset = dataset.b
  populate {}
}

phase "c" {
  target  = target.t
  dataset = dataset.c
  populate {}
}

phase "d" {
  target  = target.t
  dataset = dataset.d
  populate {}
}

phase "e" {
  target  = target.t
  dataset = dataset.e
  populate {}
}

phase "f" {
  target  = target.t
  dataset = dataset.f
  populate {}
}

phase "g" {
  target  = target.t
  dataset = dataset.g
  populate {}
}

phase "h" {
  target  = target.t
  dataset = dataset.h
  populate {}
}

phase "i" {
  target  = target.t
  dataset = dataset.i
  populate {}
}

phase "j" {
  target  = target.t
  dataset = dataset.j
  populate {}
}

phase "k" {
  target  = target.t
  dataset = dataset.k
  populate {}
}

phase "l" {
  target  = target.t
  dataset = dataset.l
  populate {}
}

phase "m" {
  target  = target.t
  dataset = dataset.m
  populate {}
}

phase "n" {
  target  = target.t
  dataset = dataset.n
  populate {}
}

phase "o" {
  target  = target.t
  dataset = dataset.o
  populate {}
}

phase "p" {
  target  = target.t
  dataset = dataset.p
  populate {}
}

dataset "q" {
  keys { count = 1 }
  values {
    size   = 10
    record = { id = "uuid" }
  }
}

dataset "r" {
  keys { count = 1 }
  values { record = { id = "guid" } }
}

dataset "s" {
  keys { count = 1 }
  values { record = ["uuid"] }
}

dataset "u" {
  keys { count = 1 }
  values { record = { id = 1 } }
}

dataset "v" {
  keys { count = 1 }
  values { record = {} }
}

dataset "w" {
  keys { count = 1 }
  values { record = { n = "int(9, 1)" } }
}

phase "q" {
  target  = target.t
  dataset = dataset.q
  populate {}
}

phase "r" {
  target  = target.t
  dataset = dataset.r
  populate {}
}

phase "s" {
  target  = target.t
  dataset = dataset.s
  populate {}
}

phase "u" {
  target  = target.t
  dataset = dataset.u
  populate {}
}

phase "v" {
  target  = target.t
  dataset = dataset.v
  populate {}
}

phase "w" {
  target  = target.t
  dataset = dataset.w
  populate {}
}

dataset "x" {
  keys { count = 1 }
  values {
    size     = 10
    encoding = "packed"
  }
}

dataset "y" {
  keys { count = 1 }
  values {
    record   = { id = "uuid" }
    encoding = "protobuf"
  }
}

dataset "z" {
  keys { count = 1 }
  values {
    record      = { id = "uuid" }
    compression = "lz4"
  }
}

phase "x" {
  target  = target.t
  dataset = dataset.x
  populate {}
}

phase "y" {
  target  = target.t
  dataset = dataset.y
  populate {}
}

phase "z" {
  target  = target.t
  dataset = dataset.z
  populate {}
}
