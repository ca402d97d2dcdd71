### quantities
thing "texts" {
  text     = "a"
  flag     = "true"
  texts    = ["a", 1]
  count    = "10k"
  unsigned = "18446744073709551615"
  duration = "1m30s"
  size     = "64MiB"
  rate     = "300/min"
  share    = "1%"
}
thing "numbers" {
  text     = 1.5
  flag     = !false
  texts    = []
  count    = 1e3
  unsigned = 0
  duration = 0.5
  size     = 1536
  rate     = 7
  share    = 0.01
}
thing "nulls" {
  text = null
  count = null
}
### expressions
locals {
  n     = 2 * local.late
  late  = -(-3)
  list  = [for x in ["a", "b", "c"] : upper(x) if x != "b"]
  pairs = { for k, v in { b = 1, (lower("A")) = 2 } : k => v * 10 }
  deep  = { list = [{ name = "x" }] }
}
thing "a" {
  text  = "${local.n}-${true}-${local.deep.list[0].name}-${"wrapped"}"
  texts = concat(local.list, [for k, v in local.pairs : "${k}${v}"])
  count = local.n > 5 && true ? [1, 2, 3][1] : 1 / 0
  flag  = (local.deep.list[0]).name == "x"
  size  = size("1KiB") + min(1, 2)
}
### variables
# -var n=10k
# -var words=a, b
# -var text=${not.evaluated}
# -var flags=[true]
# -var none=
# file size = "2KiB"
# env LOADGEN_VAR_rate=5/s
# env LOADGEN_VAR_other=1
# variant share
variable "n" { type = number }
variable "words" { type = list(string) }
variable "text" {}
variable "flags" { type = list(bool) }
variable "none" { type = list(string) }
variable "size" { default = "1KiB" }
variable "rate" {}
variable "share" { default = 1 }
variable "any" { default = ["x"] }
thing "a" {
  count = var.n
  texts = concat(var.words, var.none, var.any)
  text  = var.text
  flag  = var.flags[0]
  size  = var.size
  rate  = var.rate
  share = var.share
}
### variables without a value
variable "text" {}
variable "n" { type = number }
variable "flag" { type = bool }
### lists without a value
variable "words" { type = list(string) }
variable "numbers" { type = set(number) }
variable "map" { type = map(string) }
### anything without a value
variable "any" { type = any }
### values of other types
# -var n=many
# -var flag=[for x in [for y in [1] : y] : x]
# -var list=(
variable "n" { type = number }
variable "flag" { type = bool }
variable "list" { type = list(number) }
### values that are no text
# env LOADGEN_VAR_text=a\xff
# variant n
# -var n=1
# -var nothing
variable "text" {}
variable "n" { type = number }
### values of no variable
# -var m=1
# file m = 1
variable "n" { default = 1 }
### values, and no variables
# -var m=1
### files of variables
# file b {}
# file n = var.n
# file n =
variable "n" { default = 1 }
### files with splats
# file n = [1][*]
variable "n" { default = 1 }
### long files
# file n = ((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((
variable "n" { default = 1 }
### declarations
variable "a" { type = "string" }
variable "b" {
  type    = number
  default = "many"
}
variable "c" { defualt = 1 }
### lists in plans
variable "c" {
  type    = list(string)
  default = "a,b"
}
### locals
locals {
  a = local.b
  b = local.a
  x {}
}
locals { a = 1 }
### unknown names
thing "a" {
  text  = vra.n
  count = var.n
  texts = [local.missing]
}
### names of things
thing "a" {
  text  = target.x
  count = local
  size  = dataset.x
}
### literals only
variable "a" { default = local.x }
variable "b" { default = upper("x") }
variable "c" { default = other }
### unknown functions
thing "a" {
  text  = uper("a")
  count = secret("A")
  texts = zipf(0.99)
}
### operands
thing "a" {
  text  = "a" + 1
  count = [1][2]
  texts = { a = 1 }.b
}
### parts of texts
thing "a" {
  text = "x${[1]}"
  flag = [] ? true : false
  texts = [for x in 5 : x]
}
### keys
thing "a" {
  text  = { a = 1, a = 2 }.a
  texts = { for x in [1, 2] : "k" => x }
  count = { ([1]) = 2 }
}
### loops that fail
thing "a" {
  text  = [for x in [1] : y]
  texts = { for x in [1] : y => x }
  count = [for x in [1] : x if y]
}
### loops over null, and keys of null
thing "a" {
  texts = [for x in null : x]
  text  = { for x in [1] : null => x }
  flag  = null ? 1 : 2
}
### what is not supported
thing "a" { texts = [for x in [1] : [for y in [2] : y]] }
### splats
thing "a" { texts = [{ a = 1 }][*].a }
### groups
thing "a" { texts = { for x in [1] : x => x... } }
### names of loops
thing "a" { texts = [for var in [1] : var] }
### directives
thing "a" { text = "%{ if true }a%{ endif }" }
### no HCL
thing "a" {
### numbers out of bounds
thing "a" {
  count = 1.5
  size  = 1.5
  unsigned = -1
}
### numbers too large
thing "a" {
  count = 1e30
  duration = 1e30
  text = 1e400
}
### numbers below 0
thing "a" {
  duration = -1
  rate = -1
  share = -0.1
}
### quantities in words
thing "a" {
  count = "many"
  duration = "10"
  size = "10mib"
}
### more of them
thing "a" {
  size = "10"
  rate = "10/year"
  share = "1"
}
### types
thing "a" {
  count = []
  duration = true
  size = {}
}
### types of texts and flags
thing "a" {
  text  = []
  flag  = "maybe"
  texts = "a"
}
### lists of others
thing "a" {
  texts    = [[1]]
  unsigned = "x"
}
### references
thing "a" { thing = thing.b }
thing "b" { thing = thing["a"] }
thing "c" { thing = thing[lower("B")] }
### references to nothing
thing "first" { thing = thing.frist }
thing "b" { thing = thing[1] }
thing "c" { thing = "a" }
### references that cannot be read
thing "b" { thing = thing[nobody.x] }
thing "c" { thing = thing[null] }
### blocks
thing "a" {
  once { count = 1 }
  step { count = 2 }
  step { count = 3 }
  part "x" { count = 4 }
}
### blocks that are none
thing "a" {
  once = 1
  text {}
  onec {}
}
### blocks with names
thing "a" {
  once "x" {}
  part {}
  part "a" "b" {}
}
### a block twice
thing "a" {
  once {}
  once {}
}
### attributes that are none
thing "a" {
  txet = "a"
  ttl  = 1
  zzzz = 1
}
### what must be there
thing "a" {
  must = 1
}
