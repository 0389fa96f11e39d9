# Each run gives one bad value; the plan must name the variable.
mock_provider "aws" {
  source = "../../testing/aws"
}

variables {
  name    = "tidemark-example"
  package = "../../testing/packages/auditingest-arm64.zip"
}

run "upper_case_names_are_refused" {
  command = plan
  variables {
    name = "Tidemark"
  }
  expect_failures = [var.name]
}

run "long_names_are_refused" {
  command = plan
  variables {
    name = "a23456789012345678901234567890123456789012345678901"
  }
  expect_failures = [var.name]
}

run "long_descriptions_are_refused" {
  command = plan
  variables {
    description = join("", [for i in range(257) : "x"])
  }
  expect_failures = [var.description]
}

run "packages_that_are_no_zip_are_refused" {
  command = plan
  variables {
    package = "bootstrap"
  }
  expect_failures = [var.package]
}

run "unknown_architectures_are_refused" {
  command = plan
  variables {
    architecture = "amd64"
  }
  expect_failures = [var.architecture]
}

run "odd_environment_names_are_refused" {
  command = plan
  variables {
    environment = { "redis-addr" = "x:6379" }
  }
  expect_failures = [var.environment]
}

run "secrets_in_the_environment_are_refused" {
  command = plan
  variables {
    environment = { AUDIT_TOKENS = "default=hunter2" }
  }
  expect_failures = [var.environment]
}

run "odd_secret_names_are_refused" {
  command = plan
  variables {
    secrets               = { "audit-tokens" = "arn:aws:secretsmanager:eu-west-1:123456789012:secret:a-AbCdEf" }
    secrets_extension_arn = "arn:aws:lambda:eu-west-1:015030872274:layer:Ext:20"
  }
  expect_failures = [var.secrets]
}

run "secrets_that_are_values_are_refused" {
  command = plan
  variables {
    secrets               = { AUDIT_TOKENS = "default=hunter2" }
    secrets_extension_arn = "arn:aws:lambda:eu-west-1:015030872274:layer:Ext:20"
  }
  expect_failures = [var.secrets]
}

run "secrets_without_the_extension_are_refused" {
  command = plan
  variables {
    secrets = { AUDIT_TOKENS = "arn:aws:secretsmanager:eu-west-1:123456789012:secret:a-AbCdEf" }
  }
  expect_failures = [var.secrets]
}

run "an_extension_without_version_are_refused" {
  command = plan
  variables {
    secrets_extension_arn = "arn:aws:lambda:eu-west-1:015030872274:layer:Ext"
  }
  expect_failures = [var.secrets_extension_arn]
}

run "a_prefix_of_everything_are_refused" {
  command = plan
  variables {
    secret_prefixes = ["*"]
  }
  expect_failures = [var.secret_prefixes]
}

run "a_prefix_without_slash_are_refused" {
  command = plan
  variables {
    secret_prefixes = ["tidemark"]
  }
  expect_failures = [var.secret_prefixes]
}

run "keys_that_are_no_key_are_refused" {
  command = plan
  variables {
    secrets_kms_key_arn = "alias/tidemark"
  }
  expect_failures = [var.secrets_kms_key_arn]
}

run "too_little_memory_are_refused" {
  command = plan
  variables {
    memory_mb = 64
  }
  expect_failures = [var.memory_mb]
}

run "half_megabytes_are_refused" {
  command = plan
  variables {
    memory_mb = 256.5
  }
  expect_failures = [var.memory_mb]
}

run "no_time_are_refused" {
  command = plan
  variables {
    timeout_seconds = 0
  }
  expect_failures = [var.timeout_seconds]
}

run "more_time_than_lambda_gives_are_refused" {
  command = plan
  variables {
    timeout_seconds = 901
  }
  expect_failures = [var.timeout_seconds]
}

run "no_copies_are_refused" {
  command = plan
  variables {
    max_scale = 0
  }
  expect_failures = [var.max_scale]
}

run "keeping_logs_forever_are_refused" {
  command = plan
  variables {
    log_retention_days = 0
  }
  expect_failures = [var.log_retention_days]
}

run "a_vpc_without_subnets_are_refused" {
  command = plan
  variables {
    vpc = { subnet_ids = [], security_group_ids = ["sg-1"] }
  }
  expect_failures = [var.vpc]
}

run "a_vpc_without_security_groups_are_refused" {
  command = plan
  variables {
    vpc = { subnet_ids = ["subnet-1"], security_group_ids = [] }
  }
  expect_failures = [var.vpc]
}

run "unknown_kinds_of_http_are_refused" {
  command = plan
  variables {
    http = { kind = "alb" }
  }
  expect_failures = [var.http]
}

run "odd_routes_are_refused" {
  command = plan
  variables {
    http = { routes = ["PUT /x"] }
  }
  expect_failures = [var.http]
}

run "no_rate_are_refused" {
  command = plan
  variables {
    http = { rate_limit = 0 }
  }
  expect_failures = [var.http]
}

run "too_many_retries_are_refused" {
  command = plan
  variables {
    async = { max_retries = 3 }
  }
  expect_failures = [var.async]
}

run "too_young_an_age_are_refused" {
  command = plan
  variables {
    async = { max_age_seconds = 30 }
  }
  expect_failures = [var.async]
}

run "unknown_destinations_are_refused" {
  command = plan
  variables {
    async = { on_success = { arn = "arn:aws:s3:::bucket", kind = "s3" } }
  }
  expect_failures = [var.async]
}

run "empty_batches_are_refused" {
  command = plan
  variables {
    queue = { batch_size = 0 }
  }
  expect_failures = [var.queue]
}

run "large_batches_without_window_are_refused" {
  command = plan
  variables {
    queue = { batch_size = 100, window_seconds = 0 }
  }
  expect_failures = [var.queue]
}

run "long_windows_are_refused" {
  command = plan
  variables {
    queue = { window_seconds = 301 }
  }
  expect_failures = [var.queue]
}

run "more_consumers_than_copies_are_refused" {
  command = plan
  variables {
    queue = { max_concurrency = 6 }
  }
  expect_failures = [var.queue]
}

run "no_receives_are_refused" {
  command = plan
  variables {
    queue = { max_receives = 0 }
  }
  expect_failures = [var.queue]
}

run "wildcard_actions_are_refused" {
  command = plan
  variables {
    policy_statements = [{ sid = "All", actions = ["s3:*"], resources = ["arn:aws:s3:::b"] }]
  }
  expect_failures = [var.policy_statements]
}

run "wildcard_resources_are_refused" {
  command = plan
  variables {
    policy_statements = [{ sid = "All", actions = ["s3:GetObject"], resources = ["*"] }]
  }
  expect_failures = [var.policy_statements]
}

run "boundaries_that_are_no_policy_are_refused" {
  command = plan
  variables {
    permissions_boundary_arn = "arn:aws:iam::123456789012:role/x"
  }
  expect_failures = [var.permissions_boundary_arn]
}

run "alarms_at_nothing_are_refused" {
  command = plan
  variables {
    alarms = { errors = 0 }
  }
  expect_failures = [var.alarms]
}
