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

run "by_default_nothing_is_open_to_the_internet" {
  assert {
    condition     = output.audit_webhook_url == null && output.admission_webhook_url == null && output.observations_url == null && output.who_url == null
    error_message = "no address"
  }
  assert {
    condition     = output.wake_queue != null
    error_message = "watchcommit has a queue of wakes"
  }
}

run "the_audit_log_of_eks_reaches_auditingest_without_the_reads" {
  assert {
    condition     = aws_cloudwatch_log_subscription_filter.audit.log_group_name == "/aws/eks/prod/cluster"
    error_message = "the cluster's own log group"
  }
  assert {
    condition     = strcontains(aws_cloudwatch_log_subscription_filter.audit.filter_pattern, "ResponseComplete") && !strcontains(aws_cloudwatch_log_subscription_filter.audit.filter_pattern, "watch")
    error_message = "only finished writes"
  }
  assert {
    condition     = aws_lambda_permission.audit.source_arn == "arn:aws:logs:eu-west-1:123456789012:log-group:/aws/eks/prod/cluster:*" && aws_lambda_permission.audit.source_account == "123456789012"
    error_message = "only this log group of this account may call"
  }
}

run "no_secret_passes_through_terraform" {
  assert {
    condition     = toset(keys(output.secrets)) == toset(["audit-tokens", "read-token"])
    error_message = "the secrets are made, and filled by a person"
  }
}

run "each_function_signs_in_as_its_own_user_with_the_rules_of_infra" {
  assert {
    condition     = output.valkey_users == { for f in ["auditingest", "authorcapture", "refsweep", "watchcommit", "who"] : f => "tidemark-${f}" }
    error_message = "a user a function"
  }
  assert {
    condition     = startswith(local.acl["authorcapture"], "on ~gitops-reverser:author:v1:command:* -@all ")
    error_message = "the prefix is filled in"
  }
}

run "the_roles_are_nobody_in_the_cluster_but_their_group" {
  assert {
    condition     = alltrue([for f, e in aws_eks_access_entry.function : e.kubernetes_groups == toset(["tidemark:${f}"]) && e.cluster_name == "prod"])
    error_message = "one group each, and no access policy"
  }
  assert {
    condition     = toset(keys(aws_eks_access_entry.function)) == toset(["refsweep", "watchcommit", "who"])
    error_message = "the two webhooks need no Kubernetes API"
  }
}

run "a_long_window_gets_a_long_timeout" {
  variables {
    watch_window_seconds      = 600
    attribution_grace_seconds = 60
  }
  assert {
    condition     = local.watch_timeout == 720
    error_message = "window, grace and a minute to push"
  }
}

run "webhooks_get_throttled_addresses_when_asked_for" {
  variables {
    webhooks             = { audit = true, admission = true, admission_token = true }
    observations_address = true
    who_address          = true
    audit_route          = "prod"
  }
  assert {
    condition     = output.audit_webhook_url == "https://mock.execute-api.eu-west-1.amazonaws.com/audit-webhook/prod"
    error_message = "the route is in the address"
  }
  assert {
    condition     = endswith(output.admission_webhook_url, "/validate-operator-types") && endswith(output.observations_url, "/observations") && endswith(output.who_url, "/who")
    error_message = "and so are the others"
  }
  assert {
    condition     = contains(keys(output.secrets), "admission-token")
    error_message = "there is a secret for the token that is asked for"
  }
}

run "waiting_and_silence_raise_alarms" {
  variables {
    alarm_topic_arns = ["arn:aws:sns:eu-west-1:123456789012:platform"]
  }
  assert {
    condition     = aws_cloudwatch_log_metric_filter.lag.metric_transformation[0].value == "$.lagSeconds" && strcontains(aws_cloudwatch_log_metric_filter.lag.pattern, "drained")
    error_message = "the lag is read out of the line of each drain"
  }
  assert {
    condition     = aws_cloudwatch_metric_alarm.lag.threshold == 300 && aws_cloudwatch_metric_alarm.lag.alarm_actions == toset(["arn:aws:sns:eu-west-1:123456789012:platform"])
    error_message = "five minutes are too long"
  }
  assert {
    condition     = alltrue([for a in aws_cloudwatch_metric_alarm.silent : a.treat_missing_data == "breaching"]) && toset(keys(aws_cloudwatch_metric_alarm.silent)) == toset(["refsweep", "watchcommit"])
    error_message = "a schedule that stopped is told of"
  }
}

run "git_credentials_may_be_in_secrets_manager" {
  variables {
    git_secrets_prefix = "tidemark/git/"
  }
  assert {
    condition     = jsonencode([local.git_secrets, local.git_secret_prefixes]) == jsonencode([{ GIT_SECRETS_PREFIX = "tidemark/git/" }, ["tidemark/git/"]])
    error_message = "both functions find them, and may read nothing else"
  }
}
