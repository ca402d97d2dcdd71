# Do saves cost more as their number grows? Valkyrie's three tests on back ends of your own: works saved one by one, a collection that gets a member
# with each save, and files. One session, one save at a time, on PostgreSQL, an LDP repository, Redis and the file system. Three minutes at most.
#
#   LOADGEN_SECRET_PG=… loadgen run plans/valkyrie.hcl -var user=loadgen
#   … -var fedora='["127.0.0.1:8080"]'                          # and on Fedora 4
#   … -var redis='["127.0.0.1:6379"]' --log-root /mnt/disk      # a Redis of your own, and files on another file system
#   … -var scale=100 -var budget=2h                             # the write-up's size: 100,000 works; hours

plan "valkyrie" {
  description = "works, members of a collection, and files: cost of a save against how many there are"
}

variable "test" { default = "collections" } # "nested", "files"
variable "backend" { default = "postgres" } # "fedora", "redis", "disk"
variable "count" { default = 1000 }
variable "scale" { default = 1 }
variable "budget" { default = "5s" } # limit on a variant's saves; what it cuts off counts as far as it got
variable "size" { default = "1MB" }  # of a file, random bytes

variable "postgres" {
  type    = list(string)
  default = ["127.0.0.1:5432"]
}
variable "user" { default = "loadgen" }
variable "database" { default = "postgres" }
variable "fedora" {
  type    = list(string)
  default = [] # without one, its variants are left out
}
variable "ldp" { default = "/rest" } # the repository's path
variable "redis" {
  type    = list(string)
  default = []
}

locals {
  saved = var.test == "files" ? "files" : "works"
}

target "postgres" {
  driver    = "postgres"
  endpoints = var.postgres
  user      = var.user
  database  = var.database
  password  = secret("PG")
  column    = var.test == "files" ? "bytea" : "jsonb"
  table     = "valkyrie" # made if missing; clear drops it
  timeout   = "60s"
}

target "fedora" {
  driver    = "web"
  endpoints = length(var.fedora) > 0 ? var.fedora : ["127.0.0.1:8080"]
  timeout   = "60s"

  op "put" {
    request {
      method = "PUT"
      path   = "${var.ldp}/valkyrie-{run}/{key}" # a deleted resource leaves a tombstone (410), so each run uses its own path, and leaves it behind
      headers = {
        "Content-Type" = var.test == "files" ? "application/octet-stream" : "application/ld+json"
        "Prefer"       = "handling=lenient; received=\"minimal\"" # otherwise a second PUT of a work would have to repeat what the server has added
      }
      body = {
        collections = "{{\"@id\": \"\", \"info:valkyrie/part_of\": \"{field.part_of}\", \"info:valkyrie/text\": \"{field.text}\"}}"
        nested      = "{{\"@id\": \"\", \"info:valkyrie/part_of\": {field.part_of}, \"info:valkyrie/text\": \"{field.text}\"}}"
        files       = "{value}"
      }[var.test]
    }
  }
}

target "redis" {
  driver    = "redis"
  endpoints = var.redis
  timeout   = "60s"
  builtin { memory = "1GiB" }
}

target "disk" { # below --log-root; a save is on the device when it is acknowledged
  driver  = "files"
  timeout = "60s"
}

dataset "works" {
  keys {
    count  = var.test == "nested" ? 1 : var.count * var.scale
    pick   = var.test == "nested" ? "uniform" : "sequence"
    format = "work-%d"
  }
  values {
    record = {
      part_of = var.test == "nested" ? "grow(uuid)" : "list(info:collection/1)" # nested: one more with each save
      text    = "lorem(4)"
    }
  }
}

dataset "files" {
  keys {
    count  = var.count * var.scale
    pick   = "sequence"
    format = "file-%d"
  }
  values {
    size            = var.size
    compressibility = 0
  }
}

phase "empty" { # removes what an earlier variant left, so that each save is a new one
  target  = target[var.backend]
  dataset = dataset[local.saved]
  when    = var.backend != "fedora"
  clear { sessions = 1 }
}

phase "save" {
  target  = target[var.backend]
  dataset = dataset[local.saved]
  ops     = { put = 1 }
  closed {
    sessions   = 1
    iterations = var.count * var.scale
    duration   = var.budget # whichever comes first
  }
  growth { to = 3 * var.count * var.scale } # what three times as many saves would take
}

phase "tidy" {
  target  = target[var.backend]
  dataset = dataset[local.saved]
  when    = var.backend != "fedora"
  clear { sessions = 1 }
}

experiment {
  repeat = 1
  when   = var.backend != "fedora" || length(var.fedora) > 0
  matrix {
    test    = ["collections", "nested", "files"]
    backend = ["postgres", "fedora", "redis", "disk"]
    count   = [100, 1000]
  }
}

table "valkyrie" {
  column "done" { value = phase.save.op.put.ok }
  column "ended" { value = phase.save.ended }
  column "total" {
    unit  = "s"
    value = phase.save.seconds
  }
  column "mean" {
    title = "a save"
    unit  = "ms"
    value = phase.save.op.put.service.mean
  }
  column "drift" { # the last 5 % of the saves divided by the first 5 %
    unit  = "x"
    value = phase.save.op.put.growth.drift
  }
  column "order" { # 0: flat; 1: each save costs in proportion to how many there are
    value = phase.save.op.put.growth.order
  }
  column "order_lo" {
    title = "from"
    value = phase.save.op.put.growth.order_lo
  }
  column "order_hi" {
    title = "to"
    value = phase.save.op.put.growth.order_hi
  }
  column "seconds_to" {
    title = "three times as many"
    unit  = "s"
    value = phase.save.op.put.growth.seconds_to
  }

  expected "2017: collections, Postgres, 100,000" {
    source = "Valkyrie's benchmark, 29 August 2017: Solr beside it, Ruby client on a machine of its own"
    done   = 100000
    total  = 443.43
    mean   = 443.43 / 100000
  }
  expected "2017: collections, Fedora, 10,000" {
    source = "Valkyrie's benchmark, 29 August 2017: likewise, with an earlier Solr"
    done   = 10000
    total  = 644.47
    mean   = 644.47 / 10000
  }
  expected "2017: collections, Fedora, 100,000" {
    source = "Valkyrie's benchmark, 29 August 2017: likewise, with an earlier Solr"
    done   = 100000
    total  = 5601
    mean   = 5601 / 100000
  }
  expected "2017: collections, Fedora, 100,000, again" {
    source = "Valkyrie's benchmark, 29 August 2017"
    done   = 100000
    total  = 47318.49
    mean   = 47318.49 / 100000
  }
  expected "2017: nested, Postgres" {
    source = "Valkyrie's benchmark, 29 August 2017: failed before 10,000"
    total  = 9343
  }
  expected "2017: nested, Fedora" {
    source = "Valkyrie's benchmark, 29 August 2017: failed before 10,000, of Net::ReadTimeout"
    total  = 37685
  }
  expected "2017: files, Fedora, 1,000" {
    source = "Valkyrie's benchmark, 29 August 2017: of 1 MB each"
    done   = 1000
    total  = 346.804
    mean   = 346.804 / 1000
  }
}

table "client" { # as /usr/bin/time -v reports it
  column "user" {
    unit  = "s"
    value = phase.save.generator.cpu_user_seconds
  }
  column "system" {
    unit  = "s"
    value = phase.save.generator.cpu_system_seconds
  }
  column "elapsed" {
    unit  = "s"
    value = phase.save.generator.elapsed_seconds
  }
  column "rss" {
    title = "max RSS"
    unit  = "MiB"
    value = phase.save.generator.max_rss_bytes
  }
  column "read" {
    title = "blocks in"
    value = phase.save.generator.blocks_read
  }
  column "written" {
    title = "out"
    value = phase.save.generator.blocks_written
  }
  column "major" {
    title = "major faults"
    value = phase.save.generator.major_faults
  }
  column "minor" { value = phase.save.generator.minor_faults }

  expected "2017: collections, Postgres, 100,000" {
    source  = "Valkyrie's benchmark, 29 August 2017"
    user    = 357.16
    system  = 13.31
    elapsed = 443.43
  }
  expected "2017: collections, Fedora, 10,000" {
    source  = "Valkyrie's benchmark, 29 August 2017: with an earlier Solr"
    user    = 290.59
    system  = 28.05
    elapsed = 644.47
    rss     = 211648 * 1024
    read    = 0
    written = 1136
    major   = 0
    minor   = 65774
  }
  expected "2017: collections, Fedora, 100,000" {
    source  = "Valkyrie's benchmark, 29 August 2017: with an earlier Solr"
    user    = 2243.38
    system  = 233.10
    elapsed = 5601
    rss     = 1254852 * 1024
    read    = 0
    written = 11112
    major   = 0
    minor   = 313214
  }
  expected "2017: collections, Fedora, 100,000, again" {
    source  = "Valkyrie's benchmark, 29 August 2017"
    user    = 1345.51
    system  = 107.13
    elapsed = 47318.49
  }
  expected "2017: nested, Postgres" {
    source  = "Valkyrie's benchmark, 29 August 2017: failed before 10,000"
    user    = 8553.42
    system  = 61.51
    elapsed = 9343
    rss     = 15162988 * 1024
    read    = 29446289
    written = 6811464
    major   = 33986
    minor   = 4273558
  }
  expected "2017: nested, Fedora" {
    source  = "Valkyrie's benchmark, 29 August 2017: failed before 10,000, of Net::ReadTimeout"
    user    = 22931.08
    system  = 29.03
    elapsed = 37685
    rss     = 1712764 * 1024
    read    = 0
    written = 10304
    major   = 0
    minor   = 3901698
  }
  expected "2017: files, Fedora, 1,000" {
    source  = "Valkyrie's benchmark, 29 August 2017: of 1 MB each"
    user    = 149.848
    system  = 17.905
    elapsed = 346.804
  }
}

chart "collections" {
  title = "Works of a collection: what a save costs, by its number"
  of    = { test = "collections", count = 1000 }
  over  = "ops"
  unit  = "ms"
  log   = true
  line "mean" { value = phase.save.op.put.growth.course.mean }
}

chart "collections_total" {
  title = "Works of a collection: time of all saves, by how many there are"
  of    = { test = "collections" }
  over  = "var.count"
  unit  = "s"
  log   = true
  line "total" { value = phase.save.seconds }
}

chart "nested" {
  title = "Members of a work: what a save costs, by its number"
  of    = { test = "nested", count = 1000 }
  over  = "ops"
  unit  = "ms"
  log   = true
  line "mean" { value = phase.save.op.put.growth.course.mean }
}

chart "nested_total" {
  title = "Members of a work: time of all saves, by how many there are"
  of    = { test = "nested" }
  over  = "var.count"
  unit  = "s"
  log   = true
  line "total" { value = phase.save.seconds }
}

chart "files" {
  title = "Files: what a save costs, by its number"
  of    = { test = "files", count = 1000 }
  over  = "ops"
  unit  = "ms"
  log   = true
  line "mean" { value = phase.save.op.put.growth.course.mean }
}

chart "files_total" {
  title = "Files: time of all saves, by how many there are"
  of    = { test = "files" }
  over  = "var.count"
  unit  = "s"
  log   = true
  line "total" { value = phase.save.seconds }
}
