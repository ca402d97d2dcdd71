plan "syntax" {
  seed = 
}

target "t" { driver = "redis", endpoints = [] }
