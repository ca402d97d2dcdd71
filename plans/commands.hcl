# Five data types of Redis side by side, each with its own commands.
#
#   loadgen run plans/commands.hcl -var endpoints=127.0.0.1:6379

plan "commands" {
  description = "a hash, a list, a sorted set, a stream and a script"
}

variable "endpoints" {
  type    = list(string)
  default = ["127.0.0.1:6379"]
}
variable "duration" { default = "10s" }

target "cache" {
  driver    = "redis"
  endpoints = var.endpoints

  op "hset" {
    request { command = ["HSET", "hash:{{{key}}}", "name", "{field.name}", "born", "{field.born}"] }
  }
  op "hgetall" {
    request { command = ["HGETALL", "hash:{{{key}}}"] }
    expect { miss = ["empty"] }
  }
  op "lpush" {
    request { command = ["LPUSH", "list:{{{key}}}", "{value}"] }
  }
  op "lrange" {
    request { command = ["LRANGE", "list:{{{key}}}", "0", "9"] }
    expect { miss = ["empty"] }
  }
  op "zadd" {
    request { command = ["ZADD", "board:{{{key}}}", "{n}", "{field.name}"] }
  }
  op "top" {
    request { command = ["ZRANGEBYSCORE", "board:{{{key}}}", "-inf", "+inf", "LIMIT", "0", "10"] }
    expect { miss = ["empty"] }
  }
  op "xadd" {
    request { command = ["XADD", "log:{{{key}}}", "MAXLEN", "~", "1000", "*", "run", "{run}", "entry", "{value}"] }
  }
  op "visit" {
    request {
      command = ["EVALSHA", "1", "visits:{{{key}}}", "100"]
      script  = <<-LUA
        local n = redis.call("INCR", KEYS[1])
        if n >= tonumber(ARGV[1]) then redis.call("DEL", KEYS[1]) end
        return n
      LUA
    }
  }
}

dataset "people" {
  keys { count = 1000 }
  values {
    checked = false
    record = {
      name = "lorem(2)"
      born = "date"
    }
  }
}

phase "hash" {
  target  = target.cache
  dataset = dataset.people
  ops     = { hset = 1, hgetall = 4 }
  closed {
    sessions = 8
    duration = var.duration
  }
}

phase "list" {
  target  = target.cache
  dataset = dataset.people
  ops     = { lpush = 1, lrange = 4 }
  closed {
    sessions = 8
    duration = var.duration
  }
}

phase "sorted_set" {
  target  = target.cache
  dataset = dataset.people
  ops     = { zadd = 1, top = 4 }
  closed {
    sessions = 8
    duration = var.duration
  }
}

phase "stream" {
  target  = target.cache
  dataset = dataset.people
  ops     = { xadd = 1 }
  closed {
    sessions = 8
    pipeline = 4
    duration = var.duration
  }
}

phase "script" {
  target  = target.cache
  dataset = dataset.people
  ops     = { visit = 1 }
  closed {
    sessions = 8
    duration = var.duration
  }
}

assert "a script answers in time" {
  that = phase.script.op.visit.response.p99 < duration("100ms")
}
