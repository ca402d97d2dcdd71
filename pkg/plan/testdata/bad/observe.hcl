plan "observe" {}
target "cache" {
  driver    = "redis"
  endpoints = ["127.0.0.1:1"]
}
target "none" { driver = "null" }
dataset "d" {
  keys { count = 1 }
  values { size = 1 }
}
phase "get" {
  target  = target.cache
  dataset = dataset.d
  ops     = { get = 1 }
  closed { iterations = 1 }
}
observe "nothing" { every = "1s" }
observe "both" {
  directory { path = "/" }
  process { pid = 1 }
}
observe "fast" {
  every   = "5ms"
  timeout = "2m"
  directory { path = "/" }
}
observe "silent" {
  server { target = target.none }
}
observe "unknown" {
  server { target = target.cach }
}
observe "names" {
  server {
    target  = target.cache
    fields  = ["used_memory", "used_memory", "no good"]
    combine = "average"
  }
}
observe "ways" {
  process {
    port = 6379
    pid  = 12
  }
}
observe "port" {
  process { port = 70000 }
}
observe "nobody" {
  process { target = target.none }
}
observe "path" {
  directory { path = "" }
}
observe "place" {
  directory {}
}
observe "url" {
  prometheus {
    url    = "ftp://host"
    series = { a = "1st", b = "up{zone}", c = 5, d = "up{a=\"1\",a=\"2\"}" }
  }
}
observe "user" {
  prometheus {
    url    = "http://me:secret@host/metrics"
    series = ["up"]
  }
}
observe "hook" {
  hook {
    run = "jmap"
  }
}
observe "slip" {
  hook {
    runs   = hook.jmap
    run    = hook["jmap"].x
    fields = ["live bytes"]
  }
}
observe "path" {
  directory { path = "/" }
}
observe "resident" {
  process {
    port   = 6379
    fields = ["rss_byte"]
  }
}
