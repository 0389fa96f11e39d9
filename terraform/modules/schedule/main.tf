data "aws_caller_identity" "current" {}

resource "aws_iam_role" "schedule" {
  name                 = "${var.name}-schedule"
  description          = "Calls the function that ${var.name} wakes"
  permissions_boundary = var.permissions_boundary_arn
  tags                 = var.tags
  assume_role_policy = jsonencode({
    Version = "2012-10-17"
    Statement = [{
      Effect    = "Allow"
      Action    = "sts:AssumeRole"
      Principal = { Service = "scheduler.amazonaws.com" }
      # Schedules of other accounts may not borrow the role.
      Condition = { StringEquals = { "aws:SourceAccount" = data.aws_caller_identity.current.account_id } }
    }]
  })
}

resource "aws_iam_role_policy" "schedule" {
  name = "schedule"
  role = aws_iam_role.schedule.id
  policy = jsonencode({
    Version = "2012-10-17"
    Statement = [
      { Sid = "CallFunction", Effect = "Allow", Action = ["lambda:InvokeFunction"], Resource = [var.function_arn] },
      { Sid = "SendDeadLetters", Effect = "Allow", Action = ["sqs:SendMessage"], Resource = [var.dead_letter_queue_arn] },
    ]
  })
}

resource "aws_scheduler_schedule" "schedule" {
  name                         = var.name
  description                  = var.description
  schedule_expression          = var.every
  schedule_expression_timezone = var.timezone
  state                        = var.enabled ? "ENABLED" : "DISABLED"

  flexible_time_window {
    mode = "OFF"
  }

  target {
    arn      = var.function_arn
    role_arn = aws_iam_role.schedule.arn
    input    = var.input

    retry_policy {
      maximum_retry_attempts       = var.max_retries
      maximum_event_age_in_seconds = var.max_age_seconds
    }

    dead_letter_config {
      arn = var.dead_letter_queue_arn
    }
  }
}
