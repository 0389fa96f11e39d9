# Each run gives one bad value; the plan must name the variable.
mock_provider "aws" {
  source = "../../testing/aws"
}

variables {
  name       = "tidemark"
  vpc_id     = "vpc-1"
  subnet_ids = ["subnet-1", "subnet-2"]
  users = {
    auditingest = "on ~gitops-reverser:author:v1:audit:* resetchannels -@all +get +evalsha"
    watchcommit = "on ~gitops-reverser:* -@all +get +set"
  }
}

run "double_dashes_are_refused" {
  command = plan
  variables {
    name = "tide--mark"
  }
  expect_failures = [var.name]
}

run "long_names_are_refused" {
  command = plan
  variables {
    name = "tidemark-in-the-production-account"
  }
  expect_failures = [var.name]
}

run "unknown_versions_are_refused" {
  command = plan
  variables {
    engine_version = "6"
  }
  expect_failures = [var.engine_version]
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
    subnet_ids = ["subnet-1", "subnet-1"]
  }
  expect_failures = [var.subnet_ids]
}

run "empty_user_lists_are_refused" {
  command = plan
  variables {
    users = {}
  }
  expect_failures = [var.users]
}

run "long_user_names_are_refused" {
  command = plan
  variables {
    users = { a-name-of-many-characters = "on ~p:* -@all +get" }
  }
  expect_failures = [var.users]
}

run "users_of_all_keys_are_refused" {
  command = plan
  variables {
    users = { auditingest = "on ~* -@all +get" }
  }
  expect_failures = [var.users]
}

run "users_without_minus_all_are_refused" {
  command = plan
  variables {
    users = { auditingest = "on ~p:* +get" }
  }
  expect_failures = [var.users]
}

run "users_of_dangerous_commands_are_refused" {
  command = plan
  variables {
    users = { auditingest = "on ~p:* -@all +@dangerous" }
  }
  expect_failures = [var.users]
}

run "users_that_scan_are_refused" {
  command = plan
  variables {
    users = { auditingest = "on ~p:* -@all +get +scan" }
  }
  expect_failures = [var.users]
}

run "no_storage_are_refused" {
  command = plan
  variables {
    max_storage_gb = 0
  }
  expect_failures = [var.max_storage_gb]
}

run "too_little_processing_are_refused" {
  command = plan
  variables {
    max_ecpu_per_second = 999
  }
  expect_failures = [var.max_ecpu_per_second]
}

run "keys_that_are_no_key_are_refused" {
  command = plan
  variables {
    kms_key_arn = "alias/x"
  }
  expect_failures = [var.kms_key_arn]
}

run "topics_without_arn_are_refused" {
  command = plan
  variables {
    alarm_topic_arns = ["ops"]
  }
  expect_failures = [var.alarm_topic_arns]
}
