plan "blocks" {}
plan "again" {}
plan {}

stray = 1

locals "named" { a = 1 }
locals {
  a = 2
  inner {}
}

target "t" {
  driver = "null"
  builtin {}
  builtin {}
  replication "x" {}
}

dataset "d" {}

phase "p" {
  closed { sessions = 1 }
  closed { sessions = 2 }
}

assert "" { that = true }
