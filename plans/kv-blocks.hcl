# How long does a language model wait for its attention blocks, if a store keeps them? Prompts ask for their blocks in order until one is missing, and put
# the rest. The trace is made up: 60 conversations about 4 documents. It takes a minute and a half.
#
#   loadgen run plans/kv-blocks.hcl                                    # starts a node on this machine for each run
#   loadgen run plans/kv-blocks.hcl -var endpoints=127.0.0.1:6379      # yours: its keys with this prefix are deleted first
#   … -var file=conversation_trace.jsonl -var blocks=200k              # a published trace; docs/blocks.md says where they are

plan "kv-blocks" {
  description = "time to the last block that a prompt needs, against the rate of prompts"
}

variable "endpoints" {
  type    = list(string)
  default = []
}
variable "file" { default = "kv-blocks.jsonl" }
variable "blocks" { default = "1k" } # more than the trace's largest number
variable "ahead" { default = 8 }
variable "rate" { default = 50 }
variable "tokens" { default = 64 } # of a block, as the store has it
variable "model" {                 # of its config.json; this one is small
  default = {
    num_hidden_layers   = 24
    num_key_value_heads = 2
    hidden_size         = 896
    num_attention_heads = 14
  }
}

target "store" {
  driver    = "redis"
  endpoints = var.endpoints
  timeout   = "10s"
  builtin {
    nodes  = 1
    memory = "160MiB" # half of all blocks
  }
}

dataset "blocks" {
  keys {
    count  = var.blocks
    format = "kv-block:%012d"
  }
  values { size = var.tokens * kv_bytes(var.model) }
}

phase "empty" {
  target  = target.store
  dataset = dataset.blocks
  clear {}
}

phase "prompts" {
  target  = target.store
  dataset = dataset.blocks
  open {
    rate     = var.rate
    sessions = 8
    chain { ahead = var.ahead }
    trace {
      file = var.file
      form = "mooncake"
    }
  }
}

experiment {
  repeat  = 4
  compare = ["response.p50", "response.p95"]
  matrix { rate = [25, 50, 100, 200, 300] }
}

table "blocks" {
  column "hits" {
    unit  = "%"
    value = phase.prompts.op.chain.hit_ratio
  }
  column "wasted" { value = phase.prompts.op.chain.keys.wasted }
  column "p50" {
    unit  = "ms"
    value = phase.prompts.op.chain.response.p50
  }
  column "p95" {
    unit  = "ms"
    value = phase.prompts.op.chain.response.p95
  }
  column "read" {
    unit  = "MB/s"
    value = phase.prompts.op.chain.bytes_in_rate
  }
}

chart "ready" {
  title = "Time to the last needed block, by prompts a second"
  over  = "var.rate"
  unit  = "ms"
  line "median" { value = phase.prompts.op.chain.response.p50 }
  line "p95" { value = phase.prompts.op.chain.response.p95 }
}
