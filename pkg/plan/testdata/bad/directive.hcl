plan "directive" {
  description = "%{ for x in [1] }x%{ endfor }"
}
