# Is a disk quick enough for etcd? Its hardware guide asks for a 99th percentile of fdatasync of at most 10 ms, after writes of about 2 KiB, and
# tests that with fio --rw=write --ioengine=sync --fdatasync=1 --size=22m --bs=2300. This plan does the same: one writer, blocks that fallocate
# has reserved, a sync after each entry. loadgen disk DIR tests more at once.
#
#   loadgen run plans/etcd-disk.hcl --log-root /var/lib            # where etcd's data will be
#   loadgen run plans/etcd-disk.hcl -var prealloc=none             # a file that is extended instead
#   loadgen run plans/etcd-disk.hcl -var limit=5ms -var duration=1m

plan "etcd-disk" {
  description = "whether a log such as etcd's can sync often enough on this disk"
  quantiles   = [0.5, 0.99, 0.999, 0.9999]
}

variable "prealloc" { default = "fallocate" } # or "zero", "none"
variable "limit" { default = "10ms" }
variable "size" { default = 2300 } # of an entry in bytes
variable "duration" { default = "15s" }

target "wal" {
  driver    = "log"
  layout    = "raw" # bytes without a format, as fio writes them
  sync      = "fdatasync"
  prealloc  = var.prealloc
  file_size = "22MiB"
  timeout   = "30s" # a sync that takes long is a figure, too
}

dataset "entries" {
  keys { count = 1 }
  values { size = var.size }
}

phase "sync" {
  target  = target.wal
  dataset = dataset.entries
  ops     = { append = 1 }
  closed {
    sessions = 1
    duration = var.duration
  }
}

assert "the 99th percentile is short enough" {
  that = phase.sync.op.append.service.p99 <= duration(var.limit)
}
