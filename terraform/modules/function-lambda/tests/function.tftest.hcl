mock_provider "aws" {
  source = "../../testing/aws"
}

variables {
  name    = "tidemark-example"
  package = "../../testing/packages/auditingest-arm64.zip"
}

run "a_plain_function_has_logs_a_dead_letter_queue_and_alarms_and_no_address" {
  assert {
    condition     = aws_lambda_function.function.runtime == "provided.al2023" && aws_lambda_function.function.architectures == tolist(["arm64"])
    error_message = "the function runs the binary bootstrap on arm64"
  }
  assert {
    condition     = aws_lambda_function.function.reserved_concurrent_executions == 5
    error_message = "concurrency is always reserved"
  }
  assert {
    condition     = aws_cloudwatch_log_group.function.retention_in_days == 30 && aws_cloudwatch_log_group.function.name == "/aws/lambda/tidemark-example"
    error_message = "the log group has a retention"
  }
  assert {
    condition     = aws_lambda_function_event_invoke_config.function.destination_config[0].on_failure[0].destination == aws_sqs_queue.dead.arn
    error_message = "calls given up go to the dead-letter queue"
  }
  assert {
    condition     = toset(keys(aws_cloudwatch_metric_alarm.function)) == toset(["errors", "throttles", "dead-letters"])
    error_message = "three alarms"
  }
  assert {
    condition     = output.url == null && output.wake_queue == null
    error_message = "no address and no queue unless asked for"
  }
  assert {
    condition     = [for s in jsondecode(aws_iam_role_policy.function.policy).Statement : s.Sid] == ["WriteLog", "SendDeadLetters"]
    error_message = "the role may write the log and send dead letters, nothing else"
  }
}

run "an_http_api_is_throttled_and_logs_no_header" {
  variables {
    http = { routes = ["POST /audit-webhook/{route}"], rate_limit = 20, burst_limit = 40 }
  }
  assert {
    condition     = aws_apigatewayv2_stage.function[0].default_route_settings[0].throttling_rate_limit == 20 && aws_apigatewayv2_stage.function[0].default_route_settings[0].throttling_burst_limit == 40
    error_message = "rate and burst are limited"
  }
  assert {
    condition     = keys(aws_apigatewayv2_route.function) == ["POST /audit-webhook/{route}"]
    error_message = "only the named routes exist"
  }
  assert {
    condition     = !strcontains(lower(aws_apigatewayv2_stage.function[0].access_log_settings[0].format), "header") && !strcontains(lower(aws_apigatewayv2_stage.function[0].access_log_settings[0].format), "authorizer")
    error_message = "the access log must not hold headers"
  }
  assert {
    condition     = aws_apigatewayv2_integration.function[0].payload_format_version == "2.0"
    error_message = "payload format 2.0 is what the adapter reads"
  }
  assert {
    condition     = output.url == "https://mock.execute-api.eu-west-1.amazonaws.com"
    error_message = "the address has no trailing slash"
  }
}

run "a_function_url_carries_both_permissions" {
  variables {
    http = { kind = "url" }
  }
  assert {
    condition     = aws_lambda_permission.url[0].action == "lambda:InvokeFunctionUrl" && aws_lambda_permission.url[0].function_url_auth_type == "NONE"
    error_message = "the URL may be called"
  }
  assert {
    condition     = aws_lambda_permission.url_invoke[0].action == "lambda:InvokeFunction" && aws_lambda_permission.url_invoke[0].invoked_via_function_url
    error_message = "the call may reach the function, through the URL only"
  }
  assert {
    condition     = length(aws_apigatewayv2_api.function) == 0
    error_message = "no HTTP API beside the URL"
  }
}

run "a_secret_is_a_reference_and_readable_by_this_function_only" {
  variables {
    secrets = {
      AUDIT_TOKENS   = "arn:aws:secretsmanager:eu-west-1:123456789012:secret:tidemark/audit-AbCdEf"
      REDIS_PASSWORD = "arn:aws:secretsmanager:eu-west-1:123456789012:secret:tidemark/redis-AbCdEf"
    }
    secrets_extension_arn = "arn:aws:lambda:eu-west-1:015030872274:layer:AWS-Parameters-and-Secrets-Lambda-Extension-Arm64:20"
    secrets_kms_key_arn   = "arn:aws:kms:eu-west-1:123456789012:key/0123"
    secret_prefixes       = ["tidemark/git/"]
  }
  assert {
    condition     = aws_lambda_function.function.environment[0].variables["REDIS_PASSWORD_SECRET_ARN"] == "arn:aws:secretsmanager:eu-west-1:123456789012:secret:tidemark/redis-AbCdEf"
    error_message = "the environment holds where the secret is"
  }
  assert {
    condition     = !contains(keys(aws_lambda_function.function.environment[0].variables), "REDIS_PASSWORD")
    error_message = "the environment must not hold the secret"
  }
  assert {
    condition = [for s in jsondecode(aws_iam_role_policy.function.policy).Statement : s.Resource if s.Sid == "ReadSecrets"] == [[
      "arn:aws:secretsmanager:eu-west-1:123456789012:secret:tidemark/audit-AbCdEf",
      "arn:aws:secretsmanager:eu-west-1:123456789012:secret:tidemark/redis-AbCdEf",
      "arn:aws:secretsmanager:eu-west-1:123456789012:secret:tidemark/git/*",
    ]]
    error_message = "only the named secrets may be read"
  }
  assert {
    condition     = [for s in jsondecode(aws_iam_role_policy.function.policy).Statement : s.Resource if s.Sid == "DecryptSecrets"] == [["arn:aws:kms:eu-west-1:123456789012:key/0123"]]
    error_message = "only the named key may decrypt"
  }
  assert {
    condition     = length(aws_lambda_function.function.layers) == 1
    error_message = "the extension is attached"
  }
}

run "a_queue_reports_single_failures_and_ends_in_the_dead_letter_queue" {
  variables {
    timeout_seconds = 90
    queue           = { sender_arns = ["arn:aws:events:eu-west-1:123456789012:rule/wake"] }
  }
  assert {
    condition     = aws_lambda_event_source_mapping.wake[0].function_response_types == toset(["ReportBatchItemFailures"])
    error_message = "one bad message must not repeat its batch"
  }
  assert {
    condition     = aws_sqs_queue.wake[0].visibility_timeout_seconds == 540
    error_message = "a message stays hidden for six times the function's timeout"
  }
  assert {
    condition     = jsondecode(aws_sqs_queue.wake[0].redrive_policy).maxReceiveCount == 5
    error_message = "five receives, then the dead-letter queue"
  }
  assert {
    condition     = jsondecode(aws_sqs_queue_policy.wake[0].policy).Statement[0].Condition.ArnEquals["aws:SourceArn"] == ["arn:aws:events:eu-west-1:123456789012:rule/wake"]
    error_message = "only the named rule may send"
  }
  assert {
    condition     = contains([for s in jsondecode(aws_iam_role_policy.function.policy).Statement : s.Sid], "ReceiveWakes")
    error_message = "the function may receive"
  }
}

run "a_queue_without_senders_has_no_policy" {
  variables {
    queue = {}
  }
  assert {
    condition     = length(aws_sqs_queue_policy.wake) == 0
    error_message = "nobody outside the account's own IAM may send"
  }
}

run "results_go_to_the_destination" {
  variables {
    async = { on_success = { arn = "arn:aws:events:eu-west-1:123456789012:event-bus/tidemark", kind = "events" } }
  }
  assert {
    condition     = aws_lambda_function_event_invoke_config.function.destination_config[0].on_success[0].destination == "arn:aws:events:eu-west-1:123456789012:event-bus/tidemark"
    error_message = "the answer goes to the bus"
  }
  assert {
    condition     = [for s in jsondecode(aws_iam_role_policy.function.policy).Statement : s.Action if s.Sid == "SendResults"] == [["events:PutEvents"]]
    error_message = "and the role may put it there"
  }
  assert {
    condition     = aws_cloudwatch_metric_alarm.function["undelivered"].metric_name == "DestinationDeliveryFailures"
    error_message = "and an alarm tells of those that did not arrive"
  }
}

run "in_a_vpc_the_code_may_not_touch_network_interfaces" {
  variables {
    vpc = { subnet_ids = ["subnet-1", "subnet-2"], security_group_ids = ["sg-1"] }
  }
  assert {
    condition     = [for s in jsondecode(aws_iam_role_policy.function.policy).Statement : s.Condition.ArnLike["lambda:SourceFunctionArn"] if s.Effect == "Deny"] == [["arn:aws:lambda:*:*:function:tidemark-example"]]
    error_message = "denied to the code, allowed to Lambda"
  }
  assert {
    condition     = aws_lambda_function.function.vpc_config[0].subnet_ids == toset(["subnet-1", "subnet-2"])
    error_message = "in both subnets"
  }
}

run "further_statements_are_added_as_they_are" {
  variables {
    policy_statements = [{
      sid       = "Connect"
      actions   = ["elasticache:Connect"]
      resources = ["arn:aws:elasticache:eu-west-1:123456789012:user:tidemark-example"]
    }]
  }
  assert {
    condition     = [for s in jsondecode(aws_iam_role_policy.function.policy).Statement : s.Action if s.Sid == "Connect"] == [["elasticache:Connect"]]
    error_message = "the statement is in the role's policy"
  }
}
