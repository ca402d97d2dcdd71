# What memtier_benchmark does when told only where the server is: 4 threads with 50 connections each, 10,000 requests on each
# connection, a SET for every ten GETs, values of 32 bytes, random keys memtier-0 to memtier-9999999. It puts no keys beforehand, so on an
# empty server nearly all of its GETs miss.
#
# One thing differs: all of memtier's clients draw the same keys, one after another, unless told --distinct-client-seed. 80 clients with 1,000
# requests each leave the 91 keys of one client on the server, and GETs hit as soon as any client has put a key. Here each session draws
# keys of its own, as with that flag.
#
#   loadgen run plans/memtier-default.hcl -var endpoints=127.0.0.1:6379
#   loadgen run plans/memtier-default.hcl -var driver=memcached -var endpoints=127.0.0.1:11211
#
# Which names differ, and which mean something else: docs/coming-from.md

plan "memtier-default" {
  description = "memtier_benchmark's defaults: SET and GET 1:10 on 10,000,000 keys, 200 connections"
}

variable "endpoints" { # --server, --port
  type    = list(string)
  default = ["127.0.0.1:6379"]
}
variable "driver" { default = "redis" } # --protocol
variable "threads" { default = 4 }      # --threads: here only a factor of the sessions
variable "clients" { default = 50 }     # --clients, of each thread
variable "requests" { default = 10000 } # --requests, of each client
variable "pipeline" { default = 1 }     # --pipeline
variable "size" { default = 32 }        # --data-size
variable "keys" { default = 10000000 }  # --key-maximum
variable "sets" { default = 1 }         # --ratio SETS:GETS
variable "gets" { default = 10 }

target "server" {
  driver    = var.driver
  endpoints = var.endpoints
}

dataset "memtier" {
  keys {
    count  = var.keys
    format = "memtier-%d" # --key-prefix
  }
  values {
    size = var.size
    fill = "0x78" # all values are alike, as without --random-data
  }
}

phase "mixed" {
  target  = target.server
  dataset = dataset.memtier
  ops     = { put = var.sets, get = var.gets }
  closed {
    sessions   = var.threads * var.clients
    iterations = var.requests
    pipeline   = var.pipeline
  }
}
