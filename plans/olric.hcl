# Servers that copy values among themselves, in their own words: four nodes of Olric, with three copies of each value (N = 3), of which a get needs one
# (R = 1) and a put one, two or three. The nodes leave one after another during the load, until a single one is left.
#
#   loadgen run plans/olric.hcl --allow-exec servers=plans/olric.sh          # W = 1, 2 and 3: a minute
#
# olric.sh starts the nodes before each run, on ports 22100 to 22103; they end with loadgen. It needs Go, or what make test-servers has built.

plan "olric" {
  description = "quorums of Olric while nodes leave"
}

variable "endpoints" { # the node that stays; any node answers for all of them
  type    = list(string)
  default = ["127.0.0.1:22100"]
}

variable "w" { default = 2 }    # olric.sh gets it as LOADGEN_VAR_w
variable "step" { default = 3 } # seconds with four nodes, three, two and one
variable "rate" { default = "1k/s" }

target "olric" {
  driver    = "redis" # Olric speaks Redis' protocol, with commands of its own
  endpoints = var.endpoints

  op "get" {
    request { command = ["DM.GET", "items", "{key}"] }
    expect {
      miss          = ["KEYNOTFOUND"]
      quorum_failed = ["READQUORUM"] # with R = 2, a miss is answered like this, too
    }
  }
  op "put" {
    request { command = ["DM.PUT", "items", "{key}", "{value}"] }
    expect { quorum_failed = ["WRITEQUORUM"] }
  }
}

dataset "items" {
  keys { count = 10000 }
  values { size = 200 }
}

phase "fill" {
  target  = target.olric
  dataset = dataset.items
  populate {}
}

phase "four" {
  target  = target.olric
  dataset = dataset.items
  ops     = { get = 1, put = 1 }
  open {
    rate     = var.rate
    duration = var.step
    sessions = 16
  }
}

phase "leaving" {
  target      = target.olric
  dataset     = dataset.items
  ops         = { get = 1, put = 1 }
  max_bad     = 1
  expect_hits = 0
  open {
    rate     = var.rate
    duration = 4 * var.step
    sessions = 16
  }
  event "three" {
    at   = var.step
    do   = "hook"
    hook = hook.servers
  }
  event "two" {
    at   = 2 * var.step
    do   = "hook"
    hook = hook.servers
  }
  event "one" {
    at   = 3 * var.step
    do   = "hook"
    hook = hook.servers
  }
}

phase "one" {
  target      = target.olric
  dataset     = dataset.items
  ops         = { get = 1, put = 1 }
  max_bad     = 1
  expect_hits = 0
  open {
    rate     = var.rate
    duration = var.step
    sessions = 16
  }
}

assert "with four nodes, every quorum is met" {
  that = phase.four.op.put.ok == phase.four.op.put.due && phase.four.op.get.ok == phase.four.op.get.due
}

assert "with one node, no put has three copies, and each has one; Olric takes some for two" {
  that = var.w == 1 ? phase.one.op.put.ok == phase.one.op.put.due : phase.one.op.put.quorum_failed >= (var.w == 3 ? phase.one.op.put.due : 1)
}

experiment {
  repeat  = 1
  restart = hook.servers
  matrix {
    w = [1, 2, 3]
  }
}

table "one" {
  column "put_p50" {
    title = "put p50, four nodes"
    unit  = "us"
    value = phase.four.op.put.response.p50
  }
  column "errors" {
    title = "errors, leaving"
    unit  = "%"
    value = (phase.leaving.op.put.error + phase.leaving.op.put.timeout + phase.leaving.op.get.error + phase.leaving.op.get.timeout) / (phase.leaving.op.put.due + phase.leaving.op.get.due)
  }
  column "failed" {
    title = "quorums failed, one node"
    unit  = "%"
    value = phase.one.op.put.quorum_failed / phase.one.op.put.due
  }
  column "missed" {
    title = "gets missed, one node"
    unit  = "%"
    value = phase.one.op.get.miss / phase.one.op.get.due
  }
}
