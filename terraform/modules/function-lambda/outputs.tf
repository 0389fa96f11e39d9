output "name" {
  description = "Name of the function."
  value       = aws_lambda_function.function.function_name
}

output "arn" {
  description = "ARN of the function, for schedules and permissions."
  value       = aws_lambda_function.function.arn
}

output "identity" {
  description = "Who the function is: the ARN of its role."
  value       = aws_iam_role.function.arn
}

output "url" {
  description = "Address without a trailing slash, or null if http is null."
  value = local.api ? trimsuffix(aws_apigatewayv2_api.function[0].api_endpoint, "/") : (
    local.url ? trimsuffix(aws_lambda_function_url.function[0].function_url, "/") : null
  )
}

output "log_group" {
  description = "Name of the function's log group."
  value       = aws_cloudwatch_log_group.function.name
}

output "dead_letter_queue_arn" {
  description = "Where calls go that were given up."
  value       = aws_sqs_queue.dead.arn
}

output "wake_queue" {
  description = "URL and ARN of the queue of wakes, or null if queue is null."
  value       = var.queue == null ? null : { url = aws_sqs_queue.wake[0].url, arn = aws_sqs_queue.wake[0].arn }
}
