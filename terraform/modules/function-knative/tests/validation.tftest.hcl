# Each run gives one bad value; the plan must name the variable.
mock_provider "kubectl" {}

variables {
  name  = "watchcommit"
  image = "registry.example.com/tidemark/watchcommit:v1"
}

run "odd_names_are_refused" {
  command = plan
  variables {
    name = "Watch"
  }
  expect_failures = [var.name]
}

run "manifests_that_are_no_yaml_are_refused" {
  command = plan
  variables {
    manifest = "spec: {"
  }
  expect_failures = [var.manifest]
}

run "images_without_a_tag_are_refused" {
  command = plan
  variables {
    image = "registry.example.com/tidemark/watchcommit"
  }
  expect_failures = [var.image]
}

run "odd_environment_names_are_refused" {
  command = plan
  variables {
    environment = { "redis-addr" = "x" }
  }
  expect_failures = [var.environment]
}

run "secrets_in_the_environment_are_refused" {
  command = plan
  variables {
    environment = { REDIS_PASSWORD = "hunter2" }
  }
  expect_failures = [var.environment]
}

run "odd_secret_names_are_refused" {
  command = plan
  variables {
    secrets = { "redis-password" = { secret = "a", key = "b" } }
  }
  expect_failures = [var.secrets]
}

run "secrets_without_a_key_are_refused" {
  command = plan
  variables {
    secrets = { REDIS_PASSWORD = { secret = "a", key = "" } }
  }
  expect_failures = [var.secrets]
}

run "relative_paths_are_refused" {
  command = plan
  variables {
    config_files = { "targets" = { config_map = "a", key = "b" } }
  }
  expect_failures = [var.config_files]
}

run "too_little_memory_are_refused" {
  command = plan
  variables {
    memory_mb = 16
  }
  expect_failures = [var.memory_mb]
}

run "more_time_than_knative_gives_are_refused" {
  command = plan
  variables {
    timeout_seconds = 601
  }
  expect_failures = [var.timeout_seconds]
}

run "negative_scales_are_refused" {
  command = plan
  variables {
    min_scale = -1
  }
  expect_failures = [var.min_scale]
}

run "scales_without_limit_are_refused" {
  command = plan
  variables {
    max_scale = 0
  }
  expect_failures = [var.max_scale]
}

run "a_max_below_the_min_are_refused" {
  command = plan
  variables {
    min_scale = 3
    max_scale = 2
  }
  expect_failures = [var.max_scale]
}

run "no_concurrency_are_refused" {
  command = plan
  variables {
    concurrency = 0
  }
  expect_failures = [var.concurrency]
}

run "six_field_crons_are_refused" {
  command = plan
  variables {
    every = "0 */2 * * * *"
  }
  expect_failures = [var.every]
}

run "odd_labels_are_refused" {
  command = plan
  variables {
    labels = { team = "a b" }
  }
  expect_failures = [var.labels]
}

run "a_manifest_of_another_function_is_refused" {
  command = plan
  variables {
    manifest = <<-EOT
      apiVersion: serving.knative.dev/v1
      kind: Service
      metadata: {namespace: tidemark, name: other}
      spec:
        template:
          spec:
            serviceAccountName: other
            containers: [{image: x, env: [], resources: {limits: {memory: 64Mi}}}]
    EOT
  }
  expect_failures = [kubectl_manifest.service]
}
