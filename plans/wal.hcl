# A write-ahead log as databases keep one: entries of many sizes, threads that wait together for one sync, and files that are written again once they
# are old.
#
#   loadgen run plans/wal.hcl --log-root /var/lib
#   loadgen run plans/wal.hcl -var threads=32 -var 'size=uniform(100B, 8KiB)'
#   loadgen run plans/wal.hcl -var prealloc=fallocate    # each file is a new one, of reserved blocks

plan "wal" {
  description = "a write-ahead log: entries of many sizes, group commit, recycled files"
}

variable "threads" { default = 8 }
variable "size" { default = "lognormal(300B, 1, 16KiB)" } # of an entry: half of them are below 300 bytes
variable "prealloc" { default = "recycle" }               # or "fallocate", "zero"
variable "file_size" { default = "16MiB" }
variable "duration" { default = "3s" }

target "wal" {
  driver    = "log"
  sync      = "fdatasync"
  file_size = var.file_size
  clear     = "rotate" # a full file stays until the next is full
  prealloc  = var.prealloc
  group_commit {}
}

dataset "entries" {
  keys { count = 1 }
  values { size = var.size }
}

phase "commit" {
  target  = target.wal
  dataset = dataset.entries
  ops     = { append = 1 }
  closed {
    sessions = var.threads
    duration = var.duration
  }
}

phase "recover" { # both files, from the beginning
  target  = target.wal
  dataset = dataset.entries
  ops     = { read = 1 }
  closed {
    sessions = 1
    duration = "1s"
  }
}

assert "what was acknowledged is there" {
  that = phase.commit.log.proof.verified == phase.commit.log.proof.acknowledged
}
