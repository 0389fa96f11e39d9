variable "name" {
  description = "Name of the schedule and of its role."
  type        = string
  validation {
    condition     = can(regex("^[a-z][a-z0-9-]{0,52}$", var.name))
    error_message = "name must be 1 to 53 lower-case letters, digits and -, beginning with a letter: the role's name is built from it and may have 64."
  }
}

variable "description" {
  description = "One sentence that says what the tick is for."
  type        = string
  default     = ""
  validation {
    condition     = length(var.description) <= 512
    error_message = "description may have at most 512 characters: that is EventBridge Scheduler's limit."
  }
}

variable "function_arn" {
  description = "ARN of the Lambda function to call."
  type        = string
  validation {
    condition     = can(regex("^arn:[a-z-]+:lambda:", var.function_arn))
    error_message = "function_arn must be the ARN of a Lambda function."
  }
}

variable "every" {
  description = "When: rate(1 minute), rate(5 minutes), or cron(0/2 * * * ? *). EventBridge Scheduler's finest grain is one minute."
  type        = string
  validation {
    condition     = can(regex("^(rate\\(([2-9]|[1-9][0-9]+) (minutes|hours|days)\\)|rate\\(1 (minute|hour|day)\\)|cron\\([^ ()]+( [^ ()]+){5}\\))$", var.every))
    error_message = "every must be rate(1 minute), rate(N minutes|hours|days) or cron(six fields)."
  }
}

variable "timezone" {
  description = "Time zone of a cron expression."
  type        = string
  default     = "UTC"
  validation {
    condition     = can(regex("^[A-Za-z]+([/_+-][A-Za-z0-9]+)*$", var.timezone))
    error_message = "timezone must be a name of the IANA database, such as UTC or Europe/Berlin."
  }
}

variable "enabled" {
  description = "False keeps the schedule and stops the ticks."
  type        = bool
  default     = true
}

variable "input" {
  description = "What the function receives, as JSON. The default has the shape of an EventBridge event, which every host understands as a tick."
  type        = string
  default     = "{\"source\":\"tidemark.schedule\",\"detail-type\":\"tick\",\"detail\":{}}"
  validation {
    condition     = can(jsondecode(var.input))
    error_message = "input must be JSON."
  }
}

variable "max_retries" {
  description = "How often a tick is sent again that Lambda did not take. A later tick does the same work, so few are enough."
  type        = number
  default     = 2
  validation {
    condition     = var.max_retries >= 0 && var.max_retries <= 185
    error_message = "max_retries must be from 0 to 185."
  }
}

variable "max_age_seconds" {
  description = "How old a tick may become before it is given up."
  type        = number
  default     = 120
  validation {
    condition     = var.max_age_seconds >= 60 && var.max_age_seconds <= 86400
    error_message = "max_age_seconds must be from 60 to 86400."
  }
}

variable "dead_letter_queue_arn" {
  description = "SQS queue for ticks that were given up."
  type        = string
  validation {
    condition     = can(regex("^arn:[a-z-]+:sqs:", var.dead_letter_queue_arn))
    error_message = "dead_letter_queue_arn must be the ARN of an SQS queue."
  }
}

variable "permissions_boundary_arn" {
  description = "Permissions boundary of the schedule's role, if the account asks for one."
  type        = string
  default     = null
  validation {
    condition     = var.permissions_boundary_arn == null || can(regex("^arn:[a-z-]+:iam::([0-9]{12}|aws):policy/", var.permissions_boundary_arn))
    error_message = "permissions_boundary_arn must be the ARN of an IAM policy."
  }
}

variable "tags" {
  description = "Tags of everything that takes tags."
  type        = map(string)
  default     = {}
}
