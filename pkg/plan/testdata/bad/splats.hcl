plan "splats" {}

locals {
  a = [{ b = 1 }][*].b
  c = [for x in [1] : [for y in [x] : y]]
  d = { for x in ["a"] : x => x... }
  e = [for var in [1] : var]
}
