# Users log in once, then order: each step takes what earlier replies have said, and each reply is checked.
#
#   loadgen run plans/shop.hcl -var endpoint=127.0.0.1:8443 -var ca=shop.pem
#
# docs/http.md explains the words. Put your own service's requests in place of these.

plan "shop" {
  description = "users log in once, then create, read and cancel orders"
}

variable "endpoint" { default = "127.0.0.1:8443" }
variable "ca" { default = "shop.pem" }
variable "orders" { default = 400 }
variable "max_bad" { default = "1%" }

target "shop" {
  driver    = "web"
  endpoints = [var.endpoint]
  timeout   = "5s"
  cookies   = true
  tls { ca = var.ca }

  op "login" {
    request {
      method = "POST"
      path   = "/login"
      json   = { user = "{row.user}", password = "{row.password}" }
    }
    expect { ok = [200] }
    capture = { token = "json $.token" }
  }
  op "create" {
    request {
      method  = "POST"
      path    = "/orders"
      headers = { "Authorization" = "Bearer {captured.token}" }
      json    = { note = "for {row.name}", lines = [{ sku = "a", n = 2 }] }
    }
    expect {
      equal  = { "json $.state" = "draft", "json $.user" = "{row.user}" }
      match  = { "header Location" = "^/orders/[0-9]+$" }
      absent = ["json $.error"]
    }
    capture = { id = "json $.id" }
  }
  op "show" {
    request {
      method  = "GET"
      path    = "/orders/{captured.id}"
      headers = { "Authorization" = "Bearer {captured.token}", "Accept-Encoding" = "gzip" }
    }
    expect { equal = { "json $.id" = "{captured.id}" } }
  }
  op "cancel" {
    request {
      method  = "DELETE"
      path    = "/orders/{captured.id}"
      headers = { "Authorization" = "Bearer {captured.token}" }
    }
    expect { ok = [204] }
  }
}

dataset "users" {
  rows {
    file = "users.csv"
    pick = "session"
  }
}

phase "day" {
  target  = target.shop
  dataset = dataset.users
  max_bad = var.max_bad

  setup {
    step "login" {}
  }
  scenario "order" {
    step "create" {}
    step "show" {}
    step "cancel" {}
  }
  closed {
    sessions   = 8
    iterations = var.orders
  }
}

assert "orders are right" {
  that = phase.day.op.create.checks["json $.state"].failed == 0
}
