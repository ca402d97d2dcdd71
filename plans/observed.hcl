plan "observed" {
  description = "What a get and a put cost the server, by pipeline: processor time per op, as the kernel and the server count it"
}

variable "endpoints" {
  type    = list(string)
  default = []
}

variable "pipeline" { default = 1 }

target "server" {
  driver    = "redis"
  endpoints = var.endpoints
  builtin {}
}

dataset "items" {
  keys { count = 10000 }
  values { size = "200B" }
}

# The process that listens there, whether built in or a real server.
observe "process" {
  process { target = target.server }
}

# The server itself. Built-in nodes count calls but no time.
observe "commands" {
  server {
    target = target.server
    fields = ["cmdstat_get_calls", "cmdstat_get_usec", "cmdstat_set_calls", "cmdstat_set_usec", "used_memory"]
  }
}

phase "fill" {
  target  = target.server
  dataset = dataset.items
  populate {}
}

phase "get" {
  target  = target.server
  dataset = dataset.items
  ops     = { get = 1 }
  closed {
    sessions = 16
    pipeline = var.pipeline
    duration = "2s"
  }
}

phase "put" {
  target  = target.server
  dataset = dataset.items
  ops     = { put = 1 }
  closed {
    sessions = 16
    pipeline = var.pipeline
    duration = "2s"
  }
}

experiment {
  repeat = 5
  matrix { pipeline = [1, 16] }
}

table "server" {
  column "get" {
    title = "GET"
    unit  = "/s"
    value = phase.get.op.get.rate
  }
  column "get_cpu" {
    title = "CPU a GET"
    unit  = "us"
    value = phase.get.observe.process.cpu_seconds.delta / phase.get.op.get.ok
  }
  column "get_call" {
    title = "in the call"
    unit  = "us"
    value = phase.get.observe.commands.cmdstat_get_usec.delta / phase.get.observe.commands.cmdstat_get_calls.delta / 1000000
  }
  column "put" {
    title = "PUT"
    unit  = "/s"
    value = phase.put.op.put.rate
  }
  column "put_cpu" {
    title = "CPU a PUT"
    unit  = "us"
    value = phase.put.observe.process.cpu_seconds.delta / phase.put.op.put.ok
  }
  column "saved" {
    title = "saved"
    unit  = "%"
    value = 1 - get_cpu / variant["pipeline=1"].get_cpu
  }
  column "memory" {
    unit  = "MiB"
    value = phase.put.observe.process.rss_bytes.max
  }
}
