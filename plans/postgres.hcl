# PostgreSQL as a key-value store: each op is a statement, prepared once on each connection, in a transaction of its own.
#
#   LOADGEN_SECRET_PG=… loadgen run plans/postgres.hcl -var endpoints=127.0.0.1:5432
#   … -var column=jsonb              # values are records as JSON
#   … -var rate=3k/s                 # an open load

plan "postgres" {
  description = "puts, gets, appends and deletes by key, and what the server counts of them"
}

variable "endpoints" {
  type    = list(string)
  default = ["127.0.0.1:5432"]
}
variable "user" { default = "loadgen" }
variable "database" { default = "postgres" }
variable "column" { default = "bytea" } # or "jsonb"
variable "count" { default = 20000 }
variable "sessions" { default = 8 }
variable "pipeline" { default = 1 }
variable "rate" { default = "" }
variable "duration" { default = "5s" }

target "db" {
  driver    = "postgres"
  endpoints = var.endpoints
  user      = var.user
  database  = var.database
  password  = secret("PG")
  column    = var.column
  table     = "loadgen_${var.column}" # made if missing; the last phase drops it
}

dataset "items" {
  keys { count = var.count }
  values {
    record = {
      title = "lorem(4)"
      tags  = "list(loadgen)"
    }
  }
}

observe "server" {
  server { target = target.db }
}

phase "fill" {
  target  = target.db
  dataset = dataset.items
  populate {}
}

phase "closed" {
  when    = var.rate == ""
  target  = target.db
  dataset = dataset.items
  ops     = { get = 9, put = 1 }
  closed {
    sessions = var.sessions
    pipeline = var.pipeline
    duration = var.duration
  }
}

phase "open" {
  when    = var.rate != ""
  target  = target.db
  dataset = dataset.items
  ops     = { get = 9, put = 1 }
  open {
    rate     = var.rate == "" ? "1/s" : var.rate
    sessions = var.sessions
    duration = var.duration
  }
}

phase "wipe" {
  target  = target.db
  dataset = dataset.items
  clear {}
}
