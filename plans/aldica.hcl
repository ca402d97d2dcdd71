# aldica's memory benchmark: how much memory typed records take in a cache before a database, by encoding, and how fast a first and a second load
# through it are. It takes two minutes, four with Ignite.
#
#   LOADGEN_SECRET_PG=… loadgen run plans/aldica.hcl -var endpoints=127.0.0.1:5432 -var redis=127.0.0.1:6379   # an empty Redis: it is cleared
#   … -var ignite=127.0.0.1:10800                                                                            # and an Ignite, as in the write-up: its cache "loadgen"
#   … -var scale=125                                                                                         # the write-up's million nodes

plan "aldica" {
  description = "records in a cache before PostgreSQL: bytes of an item, cold and warm load, by encoding"
}

variable "endpoints" {
  type    = list(string)
  default = ["127.0.0.1:5432"]
}
variable "user" { default = "loadgen" }
variable "database" { default = "postgres" }
variable "redis" { default = "" }  # without it, a built-in node is started, which does not report its memory
variable "ignite" { default = "" } # without one, its variants are left out
variable "cache" { default = "redis" }
variable "encoding" { default = "json" }
variable "compression" { default = "none" }
variable "scale" { default = 1 } # 8,000 nodes each
variable "sessions" { default = 6 }

locals {
  pipeline = var.cache == "redis" ? 1 : 16 # slow enough for the probes, since an item's bytes are the slope of what they see
}

target "db" {
  driver    = "postgres"
  endpoints = var.endpoints
  user      = var.user
  database  = var.database
  password  = secret("PG")
  table     = "loadgen_aldica"
  timeout   = "30s" # a node that was given up in the first load would be missing in the second
}

target "redis" {
  driver    = "redis"
  endpoints = var.redis == "" ? [] : [var.redis]
  timeout   = "30s"
  builtin {}
}

target "ignite" {
  driver     = "ignite"
  endpoints  = [var.ignite == "" ? "127.0.0.1:10800" : var.ignite]
  cache_name = "loadgen"
  timeout    = "30s"
}

target "nodes" {
  source  = target.db
  timeout = "30s"
  cache {
    scope  = "remote"
    target = target[var.cache]
  }
}

dataset "properties" { # one of each type
  keys {
    count  = var.scale * 8000
    pick   = "sequence"
    format = "p%07d"
  }
  values {
    encoding    = var.encoding
    compression = var.compression
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
    count  = var.scale * 8000
    pick   = "sequence"
    format = "a%07d"
  }
  values {
    encoding    = var.encoding
    compression = var.compression
    record      = { aspects = "list(2 of cm:auditable, bm:benchmarkProperties)" }
  }
}

dataset "content" {
  keys {
    count  = var.scale * 8000
    pick   = "sequence"
    format = "c%07d"
  }
  values {
    encoding    = var.encoding
    compression = var.compression
    record = {
      encoding = "list(UTF-8, ISO-8859-1)"
      locale   = "list(en_US_, de_DE_, fr_FR_)"
      mimetype = "list(text/plain, text/html, application/pdf)"
      size     = "long(1, 1000000)"
      url      = "uuid(store://2020/6/30/12/30/%s.bin)"
    }
  }
}

observe "cache" {
  every   = var.cache == "redis" ? "10ms" : "0s" # Ignite answers by SQL, and is asked before and after each phase
  timeout = "5s"
  server {
    target = target[var.cache]
    fields = var.cache == "redis" ? ["used_memory", "used_memory_rss", "db0_keys"] : ["SizeUsedByData", "TotalAllocatedSize", "items"]
  }
}

# What the database holds.

phase "save-properties" {
  target  = target.db
  dataset = dataset.properties
  populate {}
}

phase "save-aspects" {
  target  = target.db
  dataset = dataset.aspects
  populate {}
}

phase "save-content" {
  target  = target.db
  dataset = dataset.content
  populate {}
}

# How much memory each cache takes by itself.

phase "empty-properties" {
  target  = target[var.cache]
  dataset = dataset.properties
  clear {}
}

phase "empty-aspects" {
  target  = target[var.cache]
  dataset = dataset.aspects
  clear {}
}

phase "empty-content" {
  target  = target[var.cache]
  dataset = dataset.content
  clear {}
}

phase "item-properties" {
  target  = target[var.cache]
  dataset = dataset.properties
  populate {
    sessions = 1
    pipeline = 1 # the average put is measured in this phase
  }
}

phase "remove-properties" {
  target  = target[var.cache]
  dataset = dataset.properties
  clear {}
}

phase "item-aspects" {
  target  = target[var.cache]
  dataset = dataset.aspects
  populate {
    sessions = 1
    pipeline = local.pipeline
  }
}

phase "remove-aspects" {
  target  = target[var.cache]
  dataset = dataset.aspects
  clear {}
}

phase "item-content" {
  target  = target[var.cache]
  dataset = dataset.content
  populate {
    sessions = 1
    pipeline = local.pipeline
  }
}

phase "remove-content" {
  target  = target[var.cache]
  dataset = dataset.content
  clear {}
}

# Each node is read once through the cache, and then once more.

phase "first" {
  target  = target.nodes
  dataset = dataset.properties
  scenario "node" {
    step "get" {}
    step "get" {
      dataset = dataset.aspects
      key     = "same"
    }
    step "get" {
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
      dataset = dataset.aspects
      key     = "same"
    }
    step "get" {
      dataset = dataset.content
      key     = "same"
    }
  }
  closed { sessions = var.sessions }
}

assert "every node was read" {
  that = phase.first.scenario.node.ok == 8000 * var.scale && phase.second.scenario.node.ok == 8000 * var.scale
}
assert "the first load was cold" {
  that = phase.first.cache.hits == 0 && phase.first.cache.loads == 3 * phase.first.scenario.node.ok
}
assert "the second load was warm" {
  that = phase.second.cache.misses == 0 && phase.second.cache.loads == 0
}

experiment {
  repeat   = 4
  baseline = "json"
  bound    = { encoding = "json" } # what Ignite's variants are divided by
  when     = var.cache != "ignite" || var.ignite != ""
  variant "json" { encoding = "json" }
  variant "packed" { encoding = "packed" }
  variant "dictionary" { encoding = "dictionary" }
  variant "json-zstd" { compression = "zstd" }
  variant "ignite-json" {
    cache    = "ignite"
    encoding = "json"
  }
  variant "ignite-packed" {
    cache    = "ignite"
    encoding = "packed"
  }
  variant "ignite-dictionary" {
    cache    = "ignite"
    encoding = "dictionary"
  }
}

table "aldica" {
  transpose = true
  variants  = ["json", "packed", "dictionary", "json-zstd"]
  column "heap" {
    title = "Heap (Xmx)"
    unit  = "MiB"
    value = null # there is no JVM
  }
  column "heap_total" {
    title = "Heap (total)"
    unit  = "MiB"
    value = null
  }
  column "nodes" {
    title = "nodesSharedCache"
    unit  = "MiB"
    value = null # a cache of objects in the JVM
  }
  column "aspects" {
    title = "nodeAspectsCache, an item"
    unit  = "B"
    value = phase["item-aspects"].observe.cache.used_memory.per_item
    error = 0.95
  }
  column "properties" {
    title = "nodePropertiesCache, an item"
    unit  = "B"
    value = phase["item-properties"].observe.cache.used_memory.per_item
    error = 0.95
  }
  column "content" {
    title = "contentDataCache, an item"
    unit  = "B"
    value = phase["item-content"].observe.cache.used_memory.per_item
    error = 0.95
  }
  column "node" {
    title = "the three together ÷ the baseline's"
    unit  = "x"
    value = aspects + properties + content
    ratio = "baseline"
  }
  column "used" {
    title = "Memory (used), above the emptied cache's"
    unit  = "MiB"
    value = phase.first.observe.cache.used_memory.after - phase["remove-content"].observe.cache.used_memory.after # before the first load, connections are open
  }
  column "used_less" {
    title = "Memory reduction (used)"
    unit  = "%"
    value = 1 - used / baseline.used
  }
  column "eff" {
    title = "Memory (eff)"
    unit  = "MiB"
    value = phase.first.observe.cache.used_memory_rss.after
  }
  column "eff_less" {
    title = "Memory reduction (eff)"
    unit  = "%"
    value = 1 - eff / baseline.eff
  }
  column "first" {
    title = "Avg. throughput - initial load"
    unit  = "/s"
    value = phase.first.scenario.node.rate_wall
  }
  column "first_peak" {
    title = "Peak avg. throughput - initial load"
    unit  = "/s"
    value = phase.first.scenario.node.rate_peak
  }
  column "second" {
    title = "Avg. throughput - 2nd load"
    unit  = "/s"
    value = phase.second.scenario.node.rate_wall
  }
  column "second_peak" {
    title = "Peak avg. throughput - 2nd load"
    unit  = "/s"
    value = phase.second.scenario.node.rate_peak
  }
  column "faster" {
    title = "2nd load ÷ the baseline's"
    unit  = "x"
    value = second
    ratio = "baseline"
  }
  column "get" {
    title = "Average get, warm"
    unit  = "us"
    value = phase.second.op.get.response.mean
  }
  column "put" {
    title = "Average put"
    unit  = "us"
    value = phase["item-properties"].op.put.response.mean
  }
  column "hits" {
    title = "Hit ratio, 2nd load"
    unit  = "%"
    value = phase.second.cache.hit_ratio
  }

  expected "2020: Alfresco 6.1.2" {
    source      = "aldica, 30 June 2020: 1,000,000 nodes in an application before PostgreSQL; an item is a cache's memory by its nodes"
    heap        = 6442450944
    heap_total  = 3221225472
    nodes       = 984.4 * 1048576
    aspects     = 376
    properties  = 1074
    content     = 184
    used        = 3221225472
    eff         = 6442450944
    first       = 424
    first_peak  = 441
    second      = 1274
    second_peak = 1276
  }

  expected "2020: aldica, min" {
    source      = "aldica, 30 June 2020: 1,000,000 nodes in an application before PostgreSQL; an item is a cache's memory by its nodes"
    heap        = 4294967296
    heap_total  = 1.3 * 1073741824
    nodes       = 1.1 * 1073741824
    aspects     = 347
    properties  = 1181
    content     = 311
    used        = 3221225472
    used_less   = 0
    eff         = 5.71 * 1073741824
    eff_less    = 0.05
    first       = 442
    first_peak  = 484
    second      = 1605
    second_peak = 1651
  }

  expected "2020: aldica, medium" {
    source      = "aldica, 30 June 2020: 1,000,000 nodes in an application before PostgreSQL; an item is a cache's memory by its nodes"
    heap        = 4294967296
    heap_total  = 1.3 * 1073741824
    nodes       = 1.1 * 1073741824
    aspects     = 210
    properties  = 651
    content     = 260
    used        = 2.35 * 1073741824
    used_less   = 0.21
    eff         = 5.05 * 1073741824
    eff_less    = 0.16
    first       = 427
    first_peak  = 460
    second      = 1654
    second_peak = 1654
  }

  expected "2020: aldica, max" {
    source      = "aldica, 30 June 2020: 1,000,000 nodes in an application before PostgreSQL; an item is a cache's memory by its nodes"
    heap        = 4294967296
    heap_total  = 1.3 * 1073741824
    nodes       = 1.1 * 1073741824
    aspects     = 210
    properties  = 504
    content     = 260
    used        = 2.2 * 1073741824
    used_less   = 0.26
    eff         = 4.9 * 1073741824
    eff_less    = 0.18
    first       = 426
    first_peak  = 443
    second      = 1913
    second_peak = 1913
  }
}

table "ignite" { # its region keeps the pages of removed entries, so an item's bytes are the growth of their filled part, divided by the items
  transpose = true
  variants  = ["ignite-json", "ignite-packed", "ignite-dictionary"]
  column "aspects" {
    title = "nodeAspectsCache, an item"
    unit  = "B"
    value = phase["item-aspects"].observe.cache.SizeUsedByData.delta / phase["item-aspects"].op.put.ok
    error = 0.95
  }
  column "properties" {
    title = "nodePropertiesCache, an item"
    unit  = "B"
    value = phase["item-properties"].observe.cache.SizeUsedByData.delta / phase["item-properties"].op.put.ok
    error = 0.95
  }
  column "content" {
    title = "contentDataCache, an item"
    unit  = "B"
    value = phase["item-content"].observe.cache.SizeUsedByData.delta / phase["item-content"].op.put.ok
    error = 0.95
  }
  column "node" {
    title = "the three together ÷ ignite-json's"
    unit  = "x"
    value = aspects + properties + content
    ratio = "bound"
  }
  column "used" {
    title = "Memory (used), nodes × bytes of their items"
    unit  = "MiB"
    value = (aspects + properties + content) * phase.first.scenario.node.ok # an emptied region keeps pages, which the first load fills
  }
  column "used_less" {
    title = "Memory reduction (used)"
    unit  = "%"
    value = 1 - used / bound.used
  }
  column "eff" {
    title = "Memory (eff), pages of earlier variants included"
    unit  = "MiB"
    value = phase.first.observe.cache.TotalAllocatedSize.after
  }
  column "first" {
    title = "Avg. throughput - initial load"
    unit  = "/s"
    value = phase.first.scenario.node.rate_wall
  }
  column "first_peak" {
    title = "Peak avg. throughput - initial load"
    unit  = "/s"
    value = phase.first.scenario.node.rate_peak
  }
  column "second" {
    title = "Avg. throughput - 2nd load"
    unit  = "/s"
    value = phase.second.scenario.node.rate_wall
  }
  column "second_peak" {
    title = "Peak avg. throughput - 2nd load"
    unit  = "/s"
    value = phase.second.scenario.node.rate_peak
  }
  column "faster" {
    title = "2nd load ÷ ignite-json's"
    unit  = "x"
    value = second
    ratio = "bound"
  }
  column "get" {
    title = "Average get, warm"
    unit  = "us"
    value = phase.second.op.get.response.mean
  }
  column "put" {
    title = "Average put"
    unit  = "us"
    value = phase["item-properties"].op.put.response.mean
  }
  column "hits" {
    title = "Hit ratio, 2nd load"
    unit  = "%"
    value = phase.second.cache.hit_ratio
  }
}

chart "loads" {
  title    = "Nodes a second, of the first load and of the second"
  variants = ["json", "dictionary"]
  unit     = "/s"
  line "first" { value = phase.first.series.rate / 3 }
  line "second" { value = phase.second.series.rate / 3 }
}
