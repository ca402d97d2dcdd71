plan "expressions" {
  description = "${var.missing} ${local.missing}"
  seed        = nothing
}

variable "untold" {}

variable "typed" {
  type    = list(string)
  default = 5
}

variable "wrong-type" { type = "string" }

variable "computed" { default = local.a }

variable "called" { default = upper("x") }

locals {
  a = local.b
  b = local.c
  c = local.a

  unknown  = lenght([1])
  added    = "a" + 1
  divided  = 1 / 0
  index    = [1, 2][5]
  null_    = "x${null}"
  listed   = "x${[1]}"
  looped   = [for x in 5 : x]
  nested   = { for x in [1, 1] : "k" => x }
  twice    = { a = 1, a = 2 }
  secret   = secret("NAME")
  target   = target.t
  bare     = var
  ok       = local.a
  duration = duration("10 parsecs")
  verbs    = format("%d %d", 1)
  chosen   = "yes" ? 1 : 2
}

assert "quoted" {
  that = "phase.a.op.get.rate > 1"
}

assert "unknown" {
  that = phase.a.op.get.rate > var.nothing
}

assert "empty" {}
