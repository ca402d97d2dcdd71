# Nuxeo's row cache: no cache, one for each session, or one for all, before PostgreSQL; with room enough, and without.
#
#   LOADGEN_SECRET_PG=… loadgen run plans/nuxeo.hcl -var endpoints=127.0.0.1:5432
#   … -var docs=5000 -var duration=30s     # the write-up's folder

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
variable "memory" { default = "64MiB" } # of all caches together
variable "coalesce" { default = false }
variable "docs" { default = 1000 } # in the folder
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

target "rows" {
  source = target.db
  cache {
    scope    = var.cache
    memory   = var.memory
    coalesce = var.coalesce
    rollback = "0.1%" # of pages end in one
  }
}

dataset "rows" {
  keys {
    count = var.docs * 8 # of each document: hierarchy, properties, rights and so on
    pick  = "zipf(0.7)"
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
    fields = ["statements_get_calls", "statements_get_us"]
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
  scenario "page" {
    step "get" { times = 20 }
  }
  closed {
    sessions = var.sessions
    duration = var.duration
    ramp     = "1s" # sessions that come bring empty caches
  }
}

experiment {
  repeat   = 3
  baseline = "session"
  variant "none" { cache = "none" }
  variant "session" { cache = "session" }
  variant "shared" { cache = "shared" }
  variant "session-pressed" {
    cache  = "session"
    memory = "200KiB"
  }
  variant "shared-pressed" {
    cache  = "shared"
    memory = "200KiB"
  }
  variant "shared-coalesced" {
    cache    = "shared"
    coalesce = true
  }
}

table "nuxeo" {
  column "pages" {
    title = "pages"
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
    title = "a query"
    unit  = "ms"
    value = sql / queries
  }
  column "page" {
    title = "queries a page"
    value = queries / phase.read.scenario.page.ok
  }
  column "hits" {
    title = "hits"
    unit  = "%"
    value = phase.read.cache.hit_ratio
  }
  column "size" {
    title = "entries"
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
  column "gain" {
    title = "gain"
    unit  = "%"
    value = pages / baseline.pages - 1
  }
}
