# Gets and puts on a cache of Apache Ignite, sixteen under way on each connection, and what its nodes count.
#
# loadgen has no node of Ignite built in. Unpack a binary release of Ignite 2, move libs/optional/ignite-indexing to libs for the nodes' own figures, and
# start bin/ignite.sh, which needs Java and listens for clients on port 10800.
#
#   loadgen run plans/ignite.hcl
#   loadgen run plans/ignite.hcl -var endpoints=10.0.0.1:10800,10.0.0.2:10800 -var cache=items   # nodes and a cache of your own, whose keys k0 and so on are overwritten and removed

plan "ignite" {
  description = "Apache Ignite: get and put, one key and sixteen at a time"
}

variable "endpoints" {
  type    = list(string)
  default = ["127.0.0.1:10800"]
}
variable "cache" { default = "loadgen" } # created if missing; set statisticsEnabled in its configuration to get counts
variable "duration" { default = "10s" }

target "cache" {
  driver     = "ignite"
  endpoints  = var.endpoints
  cache_name = var.cache
  timeout    = "10s"
}

dataset "items" {
  keys {
    count  = 20000
    format = "k%d"
  }
  values { size = "200B" }
}

observe "nodes" { # needs ignite-indexing
  timeout = "5s"
  server {
    target = target.cache
    fields = ["CacheGets", "CachePuts", "TotalAllocatedSize"]
  }
}

phase "fill" {
  target  = target.cache
  dataset = dataset.items
  populate {}
}

phase "single" {
  target  = target.cache
  dataset = dataset.items
  ops     = { get = 9, put = 1 }
  closed {
    sessions = 4
    pipeline = 16
    duration = var.duration
  }
}

phase "batch" { # a getAll or putAll
  target  = target.cache
  dataset = dataset.items
  batch   = 16
  ops     = { get = 9, put = 1 }
  closed {
    sessions = 4
    duration = var.duration
  }
}

phase "empty" {
  target  = target.cache
  dataset = dataset.items
  clear {}
}
