# Each run gives one bad value; the plan must name the variable.
mock_provider "kubectl" {}

variables {
  images = {
    auditingest   = "registry.example.com/tidemark/auditingest:v1"
    authorcapture = "registry.example.com/tidemark/authorcapture:v1"
    refsweep      = "registry.example.com/tidemark/refsweep:v1"
    watchcommit   = "registry.example.com/tidemark/watchcommit:v1"
    who           = "registry.example.com/tidemark/who:v1"
  }
}

run "empty_paths_are_refused" {
  command = plan
  variables {
    kubeconfig = ""
  }
  expect_failures = [var.kubeconfig]
}

run "missing_images_are_refused" {
  command = plan
  variables {
    images = { refsweep = "x:1" }
  }
  expect_failures = [var.images]
}

run "two_stores_are_refused" {
  command = plan
  variables {
    redis = { address = "x:6379" }
  }
  expect_failures = [var.redis]
}

run "no_stores_are_refused" {
  command = plan
  variables {
    valkey = null
  }
  expect_failures = [var.redis]
}

run "addresses_with_credentials_are_refused" {
  command = plan
  variables {
    valkey = null
    redis  = { address = "redis://u:hunter2@x:6379" }
  }
  expect_failures = [var.redis]
}

run "glob_prefixes_are_refused" {
  command = plan
  variables {
    key_prefix = "tide*"
  }
  expect_failures = [var.key_prefix]
}

run "rules_without_names_are_refused" {
  command = plan
  variables {
    git_secrets = []
  }
  expect_failures = [var.git_secrets]
}

run "six_field_crons_are_refused" {
  command = plan
  variables {
    watch_every = "0 * * * * *"
  }
  expect_failures = [var.watch_every]
}

run "windows_longer_than_knative_are_refused" {
  command = plan
  variables {
    watch_window_seconds = 481
  }
  expect_failures = [var.watch_window_seconds]
}

run "graces_longer_than_the_watch_cache_are_refused" {
  command = plan
  variables {
    attribution_grace_seconds = 90
  }
  expect_failures = [var.attribution_grace_seconds]
}

run "odd_kinds_are_refused" {
  command = plan
  variables {
    wake_on = [{ api_version = "apps/v1", kind = "deployment", resource = "deployments" }]
  }
  expect_failures = [var.wake_on]
}

run "empty_wakes_are_refused" {
  command = plan
  variables {
    wake_on = []
  }
  expect_failures = [var.wake_on]
}

run "wakes_on_secrets_are_refused" {
  command = plan
  variables {
    wake_on = [{ api_version = "v1", kind = "Secret", resource = "secrets" }]
  }
  expect_failures = [var.wake_on]
}

run "sweeps_in_seconds_are_refused" {
  command = plan
  variables {
    sweep_every = "30s"
  }
  expect_failures = [var.sweep_every]
}

run "settings_of_others_are_refused" {
  command = plan
  variables {
    sweep_environment = { REDIS_ADDR = "x:1" }
  }
  expect_failures = [var.sweep_environment]
}

run "domains_that_are_no_names_are_refused" {
  command = plan
  variables {
    webhooks = { audit_domain = "https://x", admission_domain = "a.example.com" }
  }
  expect_failures = [var.webhooks]
}

run "one_domain_for_two_are_refused" {
  command = plan
  variables {
    webhooks = { audit_domain = "a.example.com", admission_domain = "a.example.com" }
  }
  expect_failures = [var.webhooks]
}

run "authorities_that_are_no_base64_are_refused" {
  command = plan
  variables {
    webhooks = { audit_domain = "a.example.com", admission_domain = "b.example.com", ca_bundle = "---" }
  }
  expect_failures = [var.webhooks]
}

run "sinks_with_credentials_are_refused" {
  command = plan
  variables {
    moved_sink_url = "http://u:hunter2@broker/x"
  }
  expect_failures = [var.moved_sink_url]
}

run "odd_namespaces_are_refused" {
  command = plan
  variables {
    ingress_namespace = "Kourier"
  }
  expect_failures = [var.ingress_namespace]
}
