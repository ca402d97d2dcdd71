# The benchmark of Mashona's log writers (github.com/jhalliday/mashona, module logwriting), beside its own figures: four layouts, three
# entry sizes, one thread and four, MAP_SYNC and msync. Each variant runs five times, each time on new files.
#
#   loadgen run plans/mashona.hcl --log-root /mnt/pmem -var dax=true     # on ext4 or xfs with -o dax=always: a quarter of an hour
#   loadgen run plans/mashona.hcl -var quick=true                        # anywhere, under two minutes, to see what it does
#   loadgen run plans/mashona.hcl --log-root /mnt/pmem -var dax=true --pin 0,1,2,3    # threads on CPUs of the memory's node
#
# Without DAX, variants that need MAP_SYNC run with msync, as in the write-up; the column "sync used" says so. Such a row and the msync row beside
# it measure the same thing, and differ only by chance.

plan "mashona" {
  description = "log writers: throughput by layout, size of entries, threads and durability"
}

variable "layout" { default = "append" } # append: AppendOnlyLog, channel: MappedFileChannel, array: ArrayStore, raw: SimpleHardware
variable "size" { default = 1801 }       # of an entry in bytes; the original's default, not a multiple of anything
variable "threads" { default = 1 }
variable "sync" { default = "msync" } # or "map_sync"
variable "dax" { default = false }    # the file system has DAX: use "map_sync", or fail the run
variable "quick" { default = false }
variable "twice" { default = true } # false: without DAX, leave out what needs MAP_SYNC

locals {
  duration = var.quick ? "100ms" : "3s"
  file     = var.quick ? "24MiB" : "128MiB"
}

target "log" {
  driver    = "log"
  layout    = var.layout
  sync      = var.dax ? var.sync : "msync"
  file_size = local.file
  erase     = var.layout == "array" # as in the original: a slot is written and cleared in one op
}

dataset "entries" {
  keys { count = var.threads } # slots of the array: one for each thread
  values {
    size = var.size
    fill = "0xff"
  }
}

phase "write" {
  target  = target.log
  dataset = dataset.entries
  ops     = { append = 1 }
  closed {
    sessions = var.threads
    duration = local.duration
  }
}

assert "what was acknowledged is there" {
  that = phase.write.log.proof.verified == phase.write.log.proof.acknowledged
}

experiment {
  repeat   = 5
  baseline = "layout=raw,size=1024,threads=1,sync=msync"
  bound    = { layout = "raw" }
  when     = var.sync == "msync" || var.dax || var.twice
  matrix {
    layout  = ["append", "channel", "array", "raw"]
    size    = [1024, 1801, 1048576]
    threads = [1, 4]
    sync    = ["map_sync", "msync"]
  }
}

table "mashona" {
  column "benchmark" { value = phase.write.log.layout }
  column "size" { value = phase.write.log.entry_bytes }
  column "threads" { value = phase.write.load.sessions }
  column "sync" {
    title = "sync used"
    value = phase.write.log.sync_used
  }
  column "score" {
    title = "score"
    value = phase.write.op.append.rate
    error = true
  }
  column "units" { value = "ops/s" }
  column "speed" {
    title = "MB/s"
    unit  = "MB/s"
    value = phase.write.log.bytes_per_second
  }
  column "share" {
    title = "% of raw"
    unit  = "%"
    value = score / bound.score
  }
  column "forces" {
    title = "forces"
    value = phase.write.log.forces_per_op
  }
  column "cpu" {
    title = "CPU"
    unit  = "us"
    value = phase.write.generator.cpu_seconds / phase.write.op.append.ok
  }
  column "wall" { # start and end included, as by a stopwatch
    title = "wall"
    unit  = "MB/s"
    value = phase.write.op.append.rate_wall * size
  }

  expected "2020: SimpleHardware, msync" {
    source = "Mashona's README: Intel Optane DCPMM, one module, Java; chunks of 1 MiB, several threads"
    score  = 1298.167
    speed  = 1298.167 * 1048576
  }
  expected "2020: SimpleHardware, map_sync" {
    source = "Mashona's README: Intel Optane DCPMM, one module, Java; chunks of 1 MiB, several threads"
    score  = 1514.310
    speed  = 1514.310 * 1048576
    share  = 1
  }
  expected "2020: ArrayStore, map_sync, 1 thread" {
    source = "Mashona's README: Intel Optane DCPMM, one module, Java; entries of 1,048,576 bytes, the share is of SimpleHardware's"
    score  = 1129.749
    speed  = 1129.749 * 1048576
    share  = 0.75
  }
  expected "2020: ArrayStore, map_sync, 4 threads" {
    source = "Mashona's README: Intel Optane DCPMM, one module, Java; entries of 1,048,576 bytes, the share is of SimpleHardware's"
    score  = 1367.269
    speed  = 1367.269 * 1048576
    share  = 0.90
  }

  expected "2020: dd, local socket" {
    source = "Mashona's README: 1,600 blocks of 64 MiB by dd in 123.529 s"
    wall   = 107374182400 / 123.529
  }
  expected "2020: dd, other socket" {
    source = "Mashona's README: the same by way of the other processor in 251.8 s"
    wall   = 107374182400 / 251.8
  }
  expected "2020: fio, several threads" {
    source = "Mashona's README: 1,642 MiB/s"
    speed  = 1642 * 1048576
  }
  expected "literature: one thread" {
    source = "Mashona's README, of what others report for one module"
    speed  = 1500000000
  }
  expected "literature: several threads" {
    source = "Mashona's README, of what others report for one module"
    speed  = 2300000000
  }
}

chart "scaling" {
  title = "MB/s by threads, entries of 1 MiB"
  of    = { size = 1048576, sync = "msync" }
  over  = "var.threads"
  unit  = "MB/s"
  log   = true
  line "speed" { value = phase.write.log.bytes_per_second }
}
