output "name" {
  description = "Name of the schedule."
  value       = aws_scheduler_schedule.schedule.name
}

output "arn" {
  description = "ARN of the schedule."
  value       = aws_scheduler_schedule.schedule.arn
}
