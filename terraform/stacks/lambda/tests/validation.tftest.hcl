# Each run gives one bad value; the plan must name the variable.
mock_provider "aws" {
  source = "../../testing/aws"
}

variables {
  region                = "eu-west-1"
  vpc_id                = "vpc-1"
  subnet_ids            = ["subnet-1", "subnet-2"]
  eks_cluster           = "prod"
  secrets_extension_arn = "arn:aws:lambda:eu-west-1:015030872274:layer:AWS-Parameters-and-Secrets-Lambda-Extension-Arm64:20"
  packages_dir          = "../../testing/packages"
}

run "regions_by_name_are_refused" {
  command = plan
  variables {
    region = "Ireland"
  }
  expect_failures = [var.region]
}

run "odd_names_are_refused" {
  command = plan
  variables {
    name = "Tidemark"
  }
  expect_failures = [var.name]
}

run "unknown_architectures_are_refused" {
  command = plan
  variables {
    architecture = "amd64"
  }
  expect_failures = [var.architecture]
}

run "folders_with_a_slash_are_refused" {
  command = plan
  variables {
    packages_dir = "../../testing/packages/"
  }
  expect_failures = [var.packages_dir]
}

run "extensions_without_version_are_refused" {
  command = plan
  variables {
    secrets_extension_arn = "arn:aws:lambda:eu-west-1:015030872274:layer:Ext"
  }
  expect_failures = [var.secrets_extension_arn]
}

run "vpcs_by_name_are_refused" {
  command = plan
  variables {
    vpc_id = "main"
  }
  expect_failures = [var.vpc_id]
}

run "single_subnets_are_refused" {
  command = plan
  variables {
    subnet_ids = ["subnet-1"]
  }
  expect_failures = [var.subnet_ids]
}

run "clusters_by_arn_are_refused" {
  command = plan
  variables {
    eks_cluster = "arn:aws:eks:eu-west-1:123456789012:cluster/prod"
  }
  expect_failures = [var.eks_cluster]
}

run "routes_of_two_segments_are_refused" {
  command = plan
  variables {
    audit_route = "a/b"
  }
  expect_failures = [var.audit_route]
}

run "glob_prefixes_are_refused" {
  command = plan
  variables {
    key_prefix = "tide*"
  }
  expect_failures = [var.key_prefix]
}

run "tokens_of_no_webhook_are_refused" {
  command = plan
  variables {
    webhooks = { admission_token = true }
  }
  expect_failures = [var.webhooks]
}

run "five_field_crons_are_refused" {
  command = plan
  variables {
    watch_every = "* * * * *"
  }
  expect_failures = [var.watch_every]
}

run "windows_longer_than_lambda_are_refused" {
  command = plan
  variables {
    watch_window_seconds = 601
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

run "sweeps_in_seconds_are_refused" {
  command = plan
  variables {
    sweep_every = "30s"
  }
  expect_failures = [var.sweep_every]
}

run "prefixes_without_a_slash_are_refused" {
  command = plan
  variables {
    git_secrets_prefix = "tidemark"
  }
  expect_failures = [var.git_secrets_prefix]
}

run "alarms_within_the_grace_are_refused" {
  command = plan
  variables {
    lag_alarm_seconds = 30
  }
  expect_failures = [var.lag_alarm_seconds]
}

run "settings_of_others_are_refused" {
  command = plan
  variables {
    sweep_environment = { REDIS_ADDR = "x:1" }
  }
  expect_failures = [var.sweep_environment]
}

run "rules_by_name_are_refused" {
  command = plan
  variables {
    wake_rule_arns = ["pushed"]
  }
  expect_failures = [var.wake_rule_arns]
}

run "topics_by_name_are_refused" {
  command = plan
  variables {
    alarm_topic_arns = ["ops"]
  }
  expect_failures = [var.alarm_topic_arns]
}

run "keeping_logs_forever_are_refused" {
  command = plan
  variables {
    log_retention_days = 0
  }
  expect_failures = [var.log_retention_days]
}
