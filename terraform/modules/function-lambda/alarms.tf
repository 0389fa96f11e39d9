locals {
  alarms = merge(local.always, var.async.on_success == null ? {} : {
    # Lambda gives up on a destination silently: what it carried is lost.
    undelivered = {
      description = "results of ${var.name} did not reach their destination"
      namespace   = "AWS/Lambda"
      metric      = "DestinationDeliveryFailures"
      dimensions  = { FunctionName = aws_lambda_function.function.function_name }
      statistic   = "Sum"
      threshold   = 1
    }
  })

  always = {
    errors = {
      description = "${var.name} failed; its log group says why"
      namespace   = "AWS/Lambda"
      metric      = "Errors"
      dimensions  = { FunctionName = aws_lambda_function.function.function_name }
      statistic   = "Sum"
      threshold   = var.alarms.errors
    }
    throttles = {
      description = "${var.name} was called more often than max_scale (${var.max_scale}) allows"
      namespace   = "AWS/Lambda"
      metric      = "Throttles"
      dimensions  = { FunctionName = aws_lambda_function.function.function_name }
      statistic   = "Sum"
      threshold   = var.alarms.throttles
    }
    dead-letters = {
      description = "calls of ${var.name} were given up; they are kept for 14 days in ${aws_sqs_queue.dead.name}"
      namespace   = "AWS/SQS"
      metric      = "ApproximateNumberOfMessagesVisible"
      dimensions  = { QueueName = aws_sqs_queue.dead.name }
      statistic   = "Maximum"
      threshold   = 1
    }
  }
}

resource "aws_cloudwatch_metric_alarm" "function" {
  for_each            = local.alarms
  alarm_name          = "${var.name}-${each.key}"
  alarm_description   = each.value.description
  namespace           = each.value.namespace
  metric_name         = each.value.metric
  dimensions          = each.value.dimensions
  statistic           = each.value.statistic
  period              = 300
  evaluation_periods  = 1
  threshold           = each.value.threshold
  comparison_operator = "GreaterThanOrEqualToThreshold"
  treat_missing_data  = "notBreaching"
  alarm_actions       = var.alarms.topic_arns
  ok_actions          = var.alarms.topic_arns
  tags                = var.tags
}
