resource "aws_sqs_queue" "wake" {
  count = var.queue == null ? 0 : 1
  name  = "${var.name}-wake"
  # Six times the function's timeout, as AWS advises, so that a throttled batch is not handed out twice.
  visibility_timeout_seconds = 6 * var.timeout_seconds
  # A wake says "look now": one that is an hour old says nothing that a tick did not say.
  message_retention_seconds = max(3600, 12 * var.timeout_seconds)
  sqs_managed_sse_enabled   = true
  tags                      = var.tags

  redrive_policy = jsonencode({
    deadLetterTargetArn = aws_sqs_queue.dead.arn
    maxReceiveCount     = var.queue.max_receives
  })
}

resource "aws_sqs_queue_redrive_allow_policy" "dead" {
  count     = var.queue == null ? 0 : 1
  queue_url = aws_sqs_queue.dead.id
  redrive_allow_policy = jsonencode({
    redrivePermission = "byQueue"
    sourceQueueArns   = [aws_sqs_queue.wake[0].arn]
  })
}

resource "aws_sqs_queue_policy" "wake" {
  count     = try(length(var.queue.sender_arns), 0) > 0 ? 1 : 0
  queue_url = aws_sqs_queue.wake[0].id
  policy = jsonencode({
    Version = "2012-10-17"
    Statement = [{
      Sid       = "EventBridgeSendsWakes"
      Effect    = "Allow"
      Action    = "sqs:SendMessage"
      Principal = { Service = "events.amazonaws.com" }
      Resource  = aws_sqs_queue.wake[0].arn
      Condition = { ArnEquals = { "aws:SourceArn" = var.queue.sender_arns } }
    }]
  })
}

resource "aws_lambda_event_source_mapping" "wake" {
  count                              = var.queue == null ? 0 : 1
  event_source_arn                   = aws_sqs_queue.wake[0].arn
  function_name                      = aws_lambda_function.function.arn
  batch_size                         = var.queue.batch_size
  maximum_batching_window_in_seconds = var.queue.window_seconds
  function_response_types            = ["ReportBatchItemFailures"]
  tags                               = var.tags

  scaling_config {
    maximum_concurrency = var.queue.max_concurrency
  }
}
