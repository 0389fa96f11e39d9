locals {
  # The state and the function's configuration hold where a secret is, never what it is.
  secret_environment = { for name, arn in var.secrets : "${name}_SECRET_ARN" => arn }

  extension_environment = var.secrets_extension_arn == null ? {} : {
    PARAMETERS_SECRETS_EXTENSION_LOG_LEVEL = "warn"
    SECRETS_MANAGER_TTL                    = "300"
  }
}

resource "aws_cloudwatch_log_group" "function" {
  name              = "/aws/lambda/${var.name}"
  retention_in_days = var.log_retention_days
  tags              = var.tags
}

resource "aws_lambda_function" "function" {
  function_name                  = var.name
  description                    = var.description
  role                           = aws_iam_role.function.arn
  filename                       = var.package
  source_code_hash               = filebase64sha256(var.package)
  runtime                        = "provided.al2023"
  handler                        = "bootstrap"
  architectures                  = [var.architecture]
  memory_size                    = var.memory_mb
  timeout                        = var.timeout_seconds
  reserved_concurrent_executions = var.max_scale
  layers                         = var.secrets_extension_arn == null ? [] : [var.secrets_extension_arn]
  tags                           = var.tags

  environment {
    variables = merge(local.extension_environment, local.secret_environment, var.environment)
  }

  logging_config {
    log_format = "JSON"
    log_group  = aws_cloudwatch_log_group.function.name
  }

  dynamic "vpc_config" {
    for_each = var.vpc == null ? [] : [var.vpc]
    content {
      subnet_ids         = vpc_config.value.subnet_ids
      security_group_ids = vpc_config.value.security_group_ids
    }
  }

  # Without the policies the first invocations fail: logs, network interfaces.
  depends_on = [aws_iam_role_policy.function]
}

resource "aws_sqs_queue" "dead" {
  name                      = "${var.name}-dead"
  message_retention_seconds = 1209600
  sqs_managed_sse_enabled   = true
  tags                      = var.tags
}

resource "aws_lambda_function_event_invoke_config" "function" {
  function_name                = aws_lambda_function.function.function_name
  maximum_retry_attempts       = var.async.max_retries
  maximum_event_age_in_seconds = var.async.max_age_seconds

  destination_config {
    on_failure {
      destination = aws_sqs_queue.dead.arn
    }
    dynamic "on_success" {
      for_each = var.async.on_success == null ? [] : [var.async.on_success]
      content {
        destination = on_success.value.arn
      }
    }
  }
}
