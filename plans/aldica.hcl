# aldica's memory benchmark: what does an item take in a cache, by how it is written, and how fast is the first load and the second? Three kinds of
# typed records are in PostgreSQL, and are read through a cache: when it is empty, and when it is full. Takes two to three minutes.
#
#   LOADGEN_SECRET_PG=… loadgen run plans/aldica.hcl -var postgres='["127.0.0.1:5432"]' -var redis='["127.0.0.1:6379"]'
#   … -var scale=50                         # the write-up's size: 1,000,000 nodes
#
# A node is a record of properties, one of its aspects, and one of its content, which the write-up's application keeps in caches of their own. The
# Redis should serve nobody else; it is emptied of the plan's keys, and of no others.

plan "aldica" {
  description = "typed records in a cache: bytes of an item, first load and second"
}

variable "postgres" {
  type    = list(string)
  default = ["127.0.0.1:5432"]
}
variable "user" { default = "loadgen" }
variable "database" { default = "postgres" }
variable "redis" {
  type    = list(string)
  default = ["127.0.0.1:6379"]
}
variable "encoding" { default = "json" } # "packed": without names; "dictionary": words of lists and namespaces as numbers, too
variable "scale" { default = 1 }         # of 20,000 nodes
variable "sessions" { default = 6 }

locals {
  nodes = 20000 * var.scale
}

target "db" {
  driver    = "postgres"
  endpoints = var.postgres
  user      = var.user
  database  = var.database
  password  = secret("PG")
  table     = "loadgen_aldica"
  timeout   = "30s" # a node that was given up in the first load would be missing in the second
}

target "redis" {
  driver    = "redis"
  endpoints = var.redis
  timeout   = "30s"
}

target "nodes" {
  source  = target.db
  timeout = "30s"
  cache {
    scope  = "remote"
    target = target.redis
  }
}

dataset "properties" {
  keys {
    count  = local.nodes
    pick   = "sequence"
    format = "p%d"
  }
  values {
    encoding = var.encoding
    record = {
      date     = "date"
      datetime = "datetime"
      double   = "double"
      float    = "float"
      int      = "int"
      long     = "long"
      noderef  = "uuid(workspace://SpacesStore/%s)"
      qname    = "qname"
      text     = "list(9)"
    }
  }
}

dataset "aspects" {
  keys {
    count  = local.nodes
    pick   = "sequence"
    format = "a%d"
  }
  values {
    encoding = var.encoding
    record   = { aspects = "list(4 of auditable, benchmarkProperties, localized, named, ownable, referenceable, titled)" }
  }
}

dataset "content" {
  keys {
    count  = local.nodes
    pick   = "sequence"
    format = "c%d"
  }
  values {
    encoding = var.encoding
    record = {
      encoding = "list(UTF-8)"
      locale   = "list(de_DE, en_GB, en_US, fr_FR)"
      mimetype = "list(application/pdf, image/png, text/html, text/plain)"
      size     = "int(1, 1000000)"
      url      = "uuid(store://2020/6/30/12/%s.bin)"
    }
  }
}

observe "memory" {
  server { target = target.redis }
}

phase "old" { # what an earlier run has left in the cache
  target  = target.redis
  dataset = dataset.properties
  clear {}
}

phase "old_aspects" {
  target  = target.redis
  dataset = dataset.aspects
  clear {}
}

phase "old_content" {
  target  = target.redis
  dataset = dataset.content
  clear {}
}

phase "generate" {
  target  = target.db
  dataset = dataset.properties
  populate {}
}

phase "generate_aspects" {
  target  = target.db
  dataset = dataset.aspects
  populate {}
}

phase "generate_content" {
  target  = target.db
  dataset = dataset.content
  populate {}
}

phase "first" {
  target  = target.nodes
  dataset = dataset.properties
  scenario "node" {
    step "get" {}
    step "get" {
      as      = "aspects"
      dataset = dataset.aspects
      key     = "same" # the key with the same number
    }
    step "get" {
      as      = "content"
      dataset = dataset.content
      key     = "same"
    }
  }
  closed { sessions = var.sessions }
}

phase "second" {
  target  = target.nodes
  dataset = dataset.properties
  scenario "node" {
    step "get" {}
    step "get" {
      as      = "aspects"
      dataset = dataset.aspects
      key     = "same"
    }
    step "get" {
      as      = "content"
      dataset = dataset.content
      key     = "same"
    }
  }
  closed { sessions = var.sessions }
}

assert "the first load is cold" {
  that = phase.first.cache.hits == 0 && phase.first.cache.loads == 3 * local.nodes
}

assert "the second is warm" {
  that = phase.second.cache.misses == 0 && phase.second.cache.hits == 3 * local.nodes
}

experiment {
  repeat   = 3
  baseline = "json"
  variant "json" { encoding = "json" }
  variant "packed" { encoding = "packed" }
  variant "dictionary" { encoding = "dictionary" }
}

table "aldica" {
  transpose = true
  column "node" {
    title = "a node in the cache"
    unit  = "B"
    value = phase.first.observe.memory.used_memory.delta / phase.first.scenario.node.ok
  }
  column "share" {
    title = "a node ÷ the baseline's"
    unit  = "x"
    value = node
    ratio = "baseline"
  }
  column "used" {
    title = "memory (used)"
    unit  = "MiB"
    value = phase.first.observe.memory.used_memory.delta
  }
  column "used_less" {
    title = "reduction (used)"
    unit  = "%"
    value = 1 - used / baseline.used
  }
  column "eff" {
    title = "memory (eff): the process"
    unit  = "MiB"
    value = phase.second.observe.memory.used_memory_rss.after
  }
  column "eff_less" {
    title = "reduction (eff)"
    unit  = "%"
    value = 1 - eff / baseline.eff
  }
  column "first" {
    title = "first load, average"
    unit  = "/s"
    value = phase.first.scenario.node.rate_wall
  }
  column "first_peak" {
    title = "first load, peak average"
    unit  = "/s"
    value = phase.first.scenario.node.rate_peak
  }
  column "second" {
    title = "second load, average"
    unit  = "/s"
    value = phase.second.scenario.node.rate_wall
  }
  column "second_peak" {
    title = "second load, peak average"
    unit  = "/s"
    value = phase.second.scenario.node.rate_peak
  }
  column "faster" {
    title = "second load ÷ the baseline's"
    unit  = "x"
    value = second
    ratio = "baseline"
  }
  column "hits" {
    title = "hit ratio, second load"
    unit  = "%"
    value = phase.second.cache.hit_ratio
  }
  column "get" {
    title = "a get from the cache"
    unit  = "us"
    value = phase.second.op.get.kind.hit.service.mean
  }
  column "load" {
    title = "a get that fills it"
    unit  = "us"
    value = phase.first.op.get.kind.filled.service.mean
  }

  expected "2020: Alfresco, on the heap" {
    source      = "aldica, 30 June 2020: 1,000,000 nodes, a query and lookups each; a JVM of 6 GiB, with Ignite of 4 GiB; four caches, of which these are three"
    node        = 1074 + 376 + 184
    used        = 3 * 1024 * 1024 * 1024
    eff         = 6 * 1024 * 1024 * 1024
    first       = 424
    first_peak  = 441
    second      = 1274
    second_peak = 1276
    faster      = 1
  }
  expected "2020: aldica, min" {
    source      = "aldica, 30 June 2020: 1,000,000 nodes, a query and lookups each; a JVM of 6 GiB, with Ignite of 4 GiB; four caches, of which these are three"
    node        = 1181 + 347 + 311
    used        = 3 * 1024 * 1024 * 1024
    used_less   = 0
    eff         = 5.71 * 1024 * 1024 * 1024
    eff_less    = 0.05
    first       = 442
    first_peak  = 484
    second      = 1605
    second_peak = 1651
    faster      = 1605 / 1274
  }
  expected "2020: aldica, medium" {
    source      = "aldica, 30 June 2020: 1,000,000 nodes, a query and lookups each; a JVM of 6 GiB, with Ignite of 4 GiB; four caches, of which these are three"
    node        = 651 + 210 + 260
    used        = 2.35 * 1024 * 1024 * 1024
    used_less   = 0.21
    eff         = 5.05 * 1024 * 1024 * 1024
    eff_less    = 0.16
    first       = 427
    first_peak  = 460
    second      = 1654
    second_peak = 1654
    faster      = 1654 / 1274
  }
  expected "2020: aldica, max" {
    source      = "aldica, 30 June 2020: 1,000,000 nodes, a query and lookups each; a JVM of 6 GiB, with Ignite of 4 GiB; four caches, of which these are three"
    node        = 504 + 210 + 260
    used        = 2.2 * 1024 * 1024 * 1024
    used_less   = 0.26
    eff         = 4.9 * 1024 * 1024 * 1024
    eff_less    = 0.18
    first       = 426
    first_peak  = 443
    second      = 1913
    second_peak = 1913
    faster      = 1913 / 1274
  }
}

chart "loads" {
  title = "Nodes a second, of the first load and of the second"
  unit  = "/s"
  line "first" { value = phase.first.series.rate / 3 }
  line "second" { value = phase.second.series.rate / 3 }
}
