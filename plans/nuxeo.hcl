# Nuxeo's row cache: no cache, one for each session, one for all, or a server, before PostgreSQL; with room enough, and without. Takes four minutes.
# Up to 128 sessions connect: max_connections = 200 in postgresql.conf. Queries are counted by CREATE EXTENSION pg_stat_statements.
#
#   LOADGEN_SECRET_PG=… loadgen run plans/nuxeo.hcl -var endpoints=127.0.0.1:5432
#   … -var redis=127.0.0.1:6379                # the remote cache; without it, a built-in node is started
#   … -var scale=5                             # the write-up's folder of 5,000 documents

plan "nuxeo" {
  description = "caches before PostgreSQL: one for each session or one for all, with room enough or not"
}

variable "endpoints" {
  type    = list(string)
  default = ["127.0.0.1:5432"]
}
variable "user" { default = "loadgen" }
variable "database" { default = "postgres" }
variable "cache" { default = "shared" }
variable "memory" { default = 65536 } # KiB of all caches together, for a thousand documents
variable "coalesce" { default = false }
variable "redis" { default = "" }
variable "scale" { default = 1 } # of the folder, and of the caches' memory: thousands of documents
variable "skew" { default = 0.7 }
variable "sessions" { default = 8 }
variable "duration" { default = "4s" }

target "db" {
  driver    = "postgres"
  endpoints = var.endpoints
  user      = var.user
  database  = var.database
  password  = secret("PG")
  table     = "loadgen_nuxeo"
}

target "redis" {
  driver    = "redis"
  endpoints = var.redis == "" ? [] : [var.redis]
  builtin {}
}

target "rows" {
  source = target.db
  cache {
    scope    = var.cache
    target   = target.redis
    memory   = var.memory * var.scale * 1024
    coalesce = var.coalesce
    rollback = "0.1%" # of pages end in one
  }
}

dataset "rows" {
  keys {
    count = var.scale * 8000 # of each document: hierarchy, properties, rights and so on
    pick  = "zipf(${var.skew})"
  }
  values {
    record = {
      modified = "datetime"
      name     = "lorem(6)"
      parent   = "uuid"
      state    = "list(project, approved, obsolete)"
    }
  }
}

observe "sql" {
  server {
    target = target.db
    fields = ["statements_get_calls", "statements_get_us", "sessions_active", "sessions_on_locks", "locks_waiting"]
  }
}

phase "fill" {
  target  = target.db
  dataset = dataset.rows
  populate {}
}

phase "empty" {
  when    = var.cache == "remote"
  target  = target.redis
  dataset = dataset.rows
  clear {}
}

phase "read" {
  target  = target.rows
  dataset = dataset.rows
  scenario "page" {
    step "get" { times = 20 }
  }
  closed {
    sessions = var.sessions
    duration = var.duration
    ramp     = "1s" # new sessions bring empty caches
  }
}

experiment {
  repeat   = 4
  baseline = "session"
  bound    = { cache = "session" } # what each variant is divided by
  compare  = ["rate", "response.p50", "response.p99"]
  variant "none" { cache = "none" }
  variant "session" { cache = "session" }
  variant "shared" { cache = "shared" }
  variant "remote" { cache = "remote" }
  variant "session-pressed" {
    cache  = "session"
    memory = 200
  }
  variant "shared-pressed" {
    cache  = "shared"
    memory = 200
  }
  variant "hot" {
    cache  = "shared"
    memory = 200
    skew   = 1.3
  }
  variant "hot-coalesced" {
    cache    = "shared"
    memory   = 200
    skew     = 1.3
    coalesce = true
  }
  matrix {
    cache    = ["session", "shared"]
    memory   = [200]
    sessions = [2, 8, 32, 128]
    duration = ["2s"]
  }
}

table "nuxeo" {
  variants = ["none", "session", "shared", "remote", "session-pressed", "shared-pressed", "hot", "hot-coalesced"]
  column "pages" {
    title = "Req/s"
    unit  = "/s"
    value = phase.read.scenario.page.rate
  }
  column "queries" {
    title = "SQL queries"
    value = phase.read.observe.sql.statements_get_calls.delta
  }
  column "sql" {
    title = "SQL time"
    unit  = "s"
    value = phase.read.observe.sql.statements_get_us.delta / 1000000
  }
  column "query" {
    title = "each"
    unit  = "ms"
    value = sql / queries
  }
  column "page" {
    title = "queries a page"
    value = queries / phase.read.scenario.page.ok
  }
  column "faster" {
    title = "Req/s ÷ session's"
    value = pages
    ratio = "bound"
  }
  column "fewer" {
    title = "queries a page ÷ session's"
    value = page
    ratio = "bound"
  }
  column "hits" {
    title = "hit ratio"
    unit  = "%"
    value = phase.read.cache.hit_ratio
  }
  column "size" {
    title = "cache size"
    value = phase.read.cache.entries
  }
  column "blocked" {
    title = "blocked"
    value = phase.read.cache.blocked
  }
  column "waited" {
    title = "blocked"
    unit  = "s"
    value = phase.read.cache.blocked_seconds
  }
  column "active" {
    title = "backends at work"
    value = phase.read.observe.sql.sessions_active.mean
  }
  column "locked" {
    title = "on locks"
    value = phase.read.observe.sql.sessions_on_locks.mean
  }
  column "locks" {
    title = "locks waited for, most"
    value = phase.read.observe.sql.locks_waiting.max
  }
  column "gc" {
    title = "JVM's GC"
    unit  = "s"
    value = null # there is no JVM
  }
  column "full" {
    title = "full GC"
    value = null
  }

  expected "2012: no cache" {
    source  = "Nuxeo, 10 July 2012: a benchmark bound by its processors; a request is a page of its application, and GC that of its JVM"
    pages   = 20.6
    queries = 1449518
    sql     = 425
    query   = 425 / 1449518
    blocked = 57543
    waited  = 1085
    gc      = 108
    full    = 33
  }

  expected "2012: softRef" {
    source  = "Nuxeo, 10 July 2012: a benchmark bound by its processors; a request is a page of its application, and GC that of its JVM"
    pages   = 23.5
    queries = 236538
    sql     = 359
    query   = 359 / 236538
    hits    = 0.9697
    size    = 54264
    blocked = 64150
    waited  = 1226
    gc      = 121
    full    = 41
  }

  expected "2012: unified" {
    source  = "Nuxeo, 10 July 2012: a benchmark bound by its processors; a request is a page of its application, and GC that of its JVM"
    pages   = 23.5
    queries = 192404
    sql     = 319
    query   = 319 / 192404
    hits    = 0.9989
    size    = 89396
    blocked = 70992
    waited  = 1484
    gc      = 112
    full    = 35
    faster  = 1
  }

  expected "2012: softRef, 1 GB" {
    source  = "Nuxeo, 10 July 2012: a folder of 5,000 documents, a JVM of 1 GB; a request is a page of its application"
    pages   = 25.3
    queries = 360454
    sql     = 877
    query   = 877 / 360454
    hits    = 0.8702
    size    = 284671
    blocked = 38978
    waited  = 182
  }

  expected "2012: unified, 1 GB" {
    source  = "Nuxeo, 10 July 2012: a folder of 5,000 documents, a JVM of 1 GB; a request is a page of its application"
    pages   = 31.5
    queries = 238230
    sql     = 1167
    query   = 1167 / 238230
    hits    = 1
    size    = 1190708
    blocked = 171081
    waited  = 1432
    faster  = 31.5 / 25.3
  }
}

chart "fall-off" {
  title    = "Pages a second over time, with too little memory"
  variants = ["none", "session-pressed", "shared-pressed"]
  unit     = "/s"
  line "pages" { value = phase.read.series.rate / 20 }
}

chart "sessions" {
  title = "Pages a second by sessions, with too little memory"
  over  = "var.sessions"
  of    = { memory = 200, duration = "2s" }
  unit  = "/s"
  line "pages" { value = phase.read.scenario.page.rate }
}

chart "evictions" {
  title    = "Entries that made room for others, each second"
  variants = ["session-pressed", "shared-pressed"]
  line "evictions" { value = phase.read.series.cache.evictions }
}

chart "size" {
  title    = "Bytes in caches that loadgen keeps, with too little memory"
  variants = ["session-pressed", "shared-pressed"]
  unit     = "KiB"
  line "bytes" { value = phase.read.series.cache.bytes }
}
