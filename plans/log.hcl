# Appends entries to a log file on this machine, each durable before the next, and reads them back.
#
#   loadgen run plans/log.hcl                          # in the user's state directory
#   loadgen run plans/log.hcl --log-root /mnt/pmem     # on another file system
#   loadgen run plans/log.hcl -var layout=array -var threads=2

plan "log" {
  description = "one log, appended to by a number of threads, and read back"
}

variable "layout" { default = "append" } # or "channel", "array", "raw"
variable "sync" { default = "auto" }     # or "map_sync", "msync", "fdatasync", "clwb", "none"; of raw also "o_dsync"
variable "size" { default = "1KiB" }     # of an entry
variable "threads" { default = 1 }
variable "duration" { default = "3s" }

target "wal" {
  driver    = "log"
  layout    = var.layout
  sync      = var.sync
  file_size = "64MiB"

  # clear    = "rotate"  # a full log continues in another file,
  # prealloc = "recycle" # which is the old one under a new name; both are for layout append only
  # group_commit { max_delay = "0s" } # threads wait together, for one sync
  # sync_every = "100ms"              # ops end before their entries are durable: the report says what is at risk
}

dataset "entries" {
  keys { count = 100 } # slots of an array
  values { size = var.size }
}

phase "append" {
  target  = target.wal
  dataset = dataset.entries
  ops     = { append = 1 }
  closed {
    sessions = var.threads
    duration = var.duration
  }
}

phase "read" {
  target  = target.wal
  dataset = dataset.entries
  ops     = { read = 1 }
  closed {
    sessions = 1
    duration = "1s"
  }
}

assert "what was acknowledged is there" {
  that = phase.append.log.proof.verified == phase.append.log.proof.acknowledged
}
