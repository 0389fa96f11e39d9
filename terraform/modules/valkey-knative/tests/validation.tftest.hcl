# Each run gives one bad value; the plan must name the variable.
mock_provider "kubectl" {}

run "images_without_a_tag_are_refused" {
  command = plan
  variables {
    image = "valkey/valkey"
  }
  expect_failures = [var.image]
}

run "glob_prefixes_are_refused" {
  command = plan
  variables {
    key_prefix = "tide*"
  }
  expect_failures = [var.key_prefix]
}

run "prefixes_with_a_colon_at_the_end_are_refused" {
  command = plan
  variables {
    key_prefix = "tide:"
  }
  expect_failures = [var.key_prefix]
}

run "odd_secret_names_are_refused" {
  command = plan
  variables {
    passwords_secret = "Valkey Passwords"
  }
  expect_failures = [var.passwords_secret]
}

run "odd_certificate_names_are_refused" {
  command = plan
  variables {
    tls_secret = "Valkey TLS"
  }
  expect_failures = [var.tls_secret]
}

run "too_little_memory_are_refused" {
  command = plan
  variables {
    max_memory_mb = 8
  }
  expect_failures = [var.max_memory_mb]
}

run "sizes_without_a_unit_are_refused" {
  command = plan
  variables {
    storage = { size = "1" }
  }
  expect_failures = [var.storage]
}
