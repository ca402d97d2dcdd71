# A log that bench compares with the same writes by another program: one thread, each entry durable before the next.

plan "logs" {
  description = "Append to a log file for some time"
}

variable "layout" { default = "append" }
variable "sync" { default = "msync" }
variable "size" { default = 1024 }
variable "seconds" { default = 1 }

target "log" {
  driver    = "log"
  layout    = var.layout
  sync      = var.sync
  file_size = "64MiB"
}

dataset "entries" {
  keys { count = 1 }
  values {
    size = var.size
    fill = "0xff"
  }
}

dataset "filling" {
  keys { count = 1 }
  values { size = "1020KiB" }
}

# On a virtual machine, blocks that have only ever held zeros may not be on the disk yet. The other programs write to files that have
# been written to before.
phase "fill" {
  target  = target.log
  dataset = dataset.filling
  ops     = { append = 1 }
  closed { iterations = 64 }
}

phase "write" {
  target  = target.log
  dataset = dataset.entries
  ops     = { append = 1 }
  closed { duration = "${var.seconds}s" }
}
