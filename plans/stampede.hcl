# A cache is emptied while it is used: what does its source see, and how long until all is as before? The source takes one request at a time, 1 ms
# each, so that its capacity is known: 1,000 a second. Gets come at 50, 80 and 95 % of that. Eight sessions, each with its own cache, share at
# least their loads if they coalesce. It needs nothing installed, and takes two and a half minutes.
#
#   loadgen run plans/stampede.hcl
#   … -var pick='zipf(1.2)'     # hotter keys

plan "stampede" {
  description = "a flush of a shared cache before a source of known capacity, with loads of one key coalesced or not"
}

variable "load" { default = 0.5 } # of the source's capacity
variable "cache" { default = "shared" }
variable "sessions" { default = 256 }
variable "coalesce" { default = false }
variable "keys" { default = 1000 }
variable "pick" { default = "zipf(0.99)" }
variable "at" { default = "5s" }
variable "duration" { default = "16s" }

target "source" {
  driver = "redis"
  builtin { service = "1ms" }
  timeout = "5s"
}

target "rows" {
  source  = target.source
  timeout = "5s"
  cache {
    scope    = var.cache
    memory   = "16MiB"
    coalesce = var.coalesce
    on_put   = "update" # so that filling the source fills the cache, too
  }
}

dataset "rows" {
  keys {
    count = var.keys
    pick  = var.pick
  }
  values { size = 200 }
}

phase "fill" {
  target  = target.rows
  dataset = dataset.rows
  populate {}
}

phase "read" {
  target  = target.rows
  dataset = dataset.rows
  ops     = { get = 1 }
  open {
    rate     = var.load * 1000
    arrivals = "poisson"
    sessions = var.sessions
    pipeline = floor(256 / var.sessions)
    duration = var.duration
  }
  event "flush" {
    at = var.at
    do = "flush"
  }
}

experiment {
  repeat  = 1
  compare = ["response.mean", "response.p99"]
  variant "at-50" { load = 0.5 }
  variant "at-50-coalesced" {
    load     = 0.5
    coalesce = true
  }
  variant "at-80" { load = 0.8 }
  variant "at-80-coalesced" {
    load     = 0.8
    coalesce = true
  }
  variant "at-95" { load = 0.95 }
  variant "at-95-coalesced" {
    load     = 0.95
    coalesce = true
  }
  variant "at-80-session" {
    load     = 0.8
    cache    = "session"
    sessions = 8
  }
  variant "at-80-session-coalesced" {
    load     = 0.8
    cache    = "session"
    sessions = 8
    coalesce = true
  }
}

table "flush" {
  column "gets" {
    unit  = "/s"
    value = phase.read.offered_rate
  }
  column "loads" { value = phase.read.cache.loads }
  column "blocked" { value = phase.read.cache.blocked }
  column "most" {
    title = "at once"
    value = phase.read.cache.most_loads
  }
  column "before" {
    title = "p95 before"
    unit  = "ms"
    value = phase.read.event.flush.before.p95
  }
  column "during" {
    title = "during"
    unit  = "ms"
    value = phase.read.event.flush.during.p95
  }
  column "after" {
    title = "after"
    unit  = "ms"
    value = phase.read.event.flush.after.p95
  }
  column "recovered" {
    title = "recovered after"
    unit  = "s"
    value = phase.read.event.flush.recovered_seconds
  }
}

chart "loads" {
  title = "Loads from the source, each second"
  line "loads" { value = phase.read.series.cache.loads }
}

chart "at-once" {
  title = "Loads under way at once, on average over each second"
  line "loads" { value = phase.read.series.cache.load_seconds } # spent in a second
}
