# Should I put a cache before my PostgreSQL, and how large? No cache, and a shared one of five sizes, on your keys. Takes two minutes.
#
#   LOADGEN_SECRET_PG=… loadgen run plans/cache-size.hcl -var endpoints=127.0.0.1:5432
#   … -var keys=1000000 -var size=1000 -var pick='zipf(0.8)' -var 'sessions=32'      # your own keys, values and sessions

plan "cache-size" {
  description = "how the hit ratio of a shared cache before PostgreSQL grows with its memory, and what that gains"
}

variable "endpoints" {
  type    = list(string)
  default = ["127.0.0.1:5432"]
}
variable "user" { default = "loadgen" }
variable "database" { default = "postgres" }
variable "cache" { default = "shared" }
variable "percent" { default = 10 } # of all keys and values that fit into the cache
variable "keys" { default = 20000 }
variable "size" { default = 200 } # bytes of a value
variable "pick" { default = "zipf(0.99)" }
variable "sessions" { default = 8 }
variable "gets" { default = 10000 } # of each session

target "db" {
  driver    = "postgres"
  endpoints = var.endpoints
  user      = var.user
  database  = var.database
  password  = secret("PG")
  table     = "loadgen_cache_size"
}

target "rows" {
  source = target.db
  cache {
    scope  = var.cache
    memory = floor(var.percent * var.keys * (var.size + 16) / 100) # a key has 16 bytes
  }
}

dataset "rows" {
  keys {
    count = var.keys
    pick  = var.pick
  }
  values { size = var.size }
}

observe "sql" {
  server {
    target = target.db
    fields = ["statements_get_calls"]
  }
}

phase "fill" {
  target  = target.db
  dataset = dataset.rows
  populate {}
}

phase "read" {
  target  = target.rows
  dataset = dataset.rows
  ops     = { get = 1 }
  closed {
    sessions   = var.sessions
    iterations = var.gets
  }
}

experiment {
  repeat   = 4
  baseline = "none"
  compare  = ["rate", "response.p99"]
  variant "none" { cache = "none" }
  matrix { percent = [1, 3, 10, 30, 100] }
}

table "sizes" {
  column "memory" {
    title = "memory"
    unit  = "KiB"
    value = phase.read.cache.bytes
  }
  column "hits" {
    title = "hit ratio"
    unit  = "%"
    value = phase.read.cache.hit_ratio
  }
  column "lru" {
    title = "of an LRU cache"
    unit  = "%"
    value = phase.read.cache.lru_hit_ratio
  }
  column "queries" {
    title = "SQL queries"
    value = phase.read.observe.sql.statements_get_calls.delta
  }
  column "gets" {
    title = "gets"
    unit  = "/s"
    value = phase.read.op.get.rate
  }
  column "faster" {
    title = "÷ without a cache"
    value = gets
    ratio = "baseline"
  }
  column "p99" {
    unit  = "ms"
    value = phase.read.op.get.response.p99
  }
}

chart "hits" {
  title = "Hit ratio by memory, as a share of all keys and values"
  over  = "var.percent"
  unit  = "%"
  line "measured" { value = phase.read.cache.hit_ratio }
  line "LRU on the same draws" { value = phase.read.cache.lru_hit_ratio }
}
