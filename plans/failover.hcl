# What does a failover of Redis cost? A master with two replicas and three Sentinels; the replicas fall behind for a moment, and then the master is
# killed under load: once with puts that wait for no replica, once for one, and once for both.
#
#   loadgen run plans/failover.hcl --allow-exec servers=plans/failover.sh               # each three times: two minutes
#   loadgen run plans/failover.hcl --allow-exec servers=plans/failover.sh --variant target=wait_2
#
# failover.sh starts the servers before each run, on ports 7100 to 7102 and 7110 to 7112, and kills the master. All end with loadgen.

plan "failover" {
  description = "a master of Redis is killed: how long, how many errors, and which acknowledged writes are gone"
}

variable "endpoints" { # the Sentinels
  type    = list(string)
  default = ["127.0.0.1:7110", "127.0.0.1:7111", "127.0.0.1:7112"]
}

variable "target" { default = "wait_0" }
variable "rate" { default = "1k/s" }
variable "kill" { default = "3s" }
variable "duration" { default = "10s" }

target "wait_0" { # Redis' default: a put is acknowledged before a replica has it
  driver    = "redis"
  endpoints = var.endpoints
  sentinel { master = "main" }
  # retry { attempts = 3 } # as many clients do; shows what that adds to the outage
}

target "wait_1" {
  driver    = "redis"
  endpoints = var.endpoints
  sentinel { master = "main" }
  wait {
    replicas = 1
    timeout  = "30ms"
  }
}

target "wait_2" { # after the failover there is only one replica, so no put is ok any more
  driver    = "redis"
  endpoints = var.endpoints
  sentinel { master = "main" }
  wait {
    replicas = 2
    timeout  = "30ms"
  }
}

dataset "items" {
  keys {
    count   = 100000 # many, so that few are put again after the failover
    writers = "one"
  }
  values { size = 200 }
}

phase "load" {
  target  = target[var.target]
  dataset = dataset.items
  ops     = { put = 1 }
  max_bad = 1
  open {
    rate     = var.rate
    duration = var.duration
    sessions = 64
  }
  event "kill" {
    at   = var.kill
    do   = "hook"
    hook = hook.servers
  }
}

phase "check" { # asks the new master for every key
  target  = target[var.target]
  dataset = dataset.items
  verify {
    pipeline    = 1
    expect_lost = true # how many is the question
  }
}

experiment {
  repeat  = 4
  restart = hook.servers
  matrix {
    target = ["wait_0", "wait_1", "wait_2"]
  }
}

table "failover" {
  column "away" {
    title = "away"
    unit  = "s"
    value = phase.load.away_seconds / 64 # per session
  }
  column "errors" { value = phase.load.op.put.error + phase.load.op.put.timeout }
  column "quorum" {
    title = "too few copies"
    value = phase.load.op.put.quorum_failed
  }
  column "acked" {
    title = "acknowledged"
    value = phase.load.op.put.ok
  }
  column "lost" {
    title = "of these lost"
    value = phase.check.verify.lost
  }
}
