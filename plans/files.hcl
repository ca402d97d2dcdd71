# Values as files on this machine, one per key: each put is on the device before it is acknowledged.
#
#   loadgen run plans/files.hcl                          # in the user's state directory
#   loadgen run plans/files.hcl --log-root /mnt/disk     # on another file system
#   loadgen run plans/files.hcl -var sync=none           # what the waits for the device cost

plan "files" {
  description = "saves and reads of files, each with a key of its own"
}

variable "sync" { default = "fdatasync" } # or "none"
variable "size" { default = "16KiB" }
variable "count" { default = 200 }
variable "duration" { default = "3s" }

target "disk" {
  driver = "files"
  sync   = var.sync
}

dataset "blobs" {
  keys {
    count = var.count
    scope = "session"
  }
  values { size = var.size }
}

phase "save" {
  target  = target.disk
  dataset = dataset.blobs
  ops     = { put = 1 }
  closed { duration = var.duration }
}

phase "read" {
  target  = target.disk
  dataset = dataset.blobs
  setup { ops = { put = 1 } }
  ops = { get = 1 }
  closed { duration = var.duration }
}
