variable "name" {
  description = "Name of the function and, as a prefix, of everything that belongs to it."
  type        = string
  validation {
    condition     = can(regex("^[a-z][a-z0-9-]{0,47}$", var.name))
    error_message = "name must be 1 to 48 lower-case letters, digits and -, beginning with a letter: a role's name is built from it and may have 64."
  }
}

variable "description" {
  description = "One sentence that says what the function does; shown in the Lambda console."
  type        = string
  default     = ""
  validation {
    condition     = length(var.description) <= 256
    error_message = "description may have at most 256 characters: that is Lambda's limit."
  }
}

variable "package" {
  description = "Path of the zip file with the binary `bootstrap` in it (make lambda-zips)."
  type        = string
  validation {
    condition     = endswith(var.package, ".zip")
    error_message = "package must be the path of a .zip file."
  }
}

variable "architecture" {
  description = "Instruction set of the binary in the package: arm64 or x86_64."
  type        = string
  default     = "arm64"
  validation {
    condition     = contains(["arm64", "x86_64"], var.architecture)
    error_message = "architecture must be arm64 or x86_64, and the package must be built for it."
  }
}

variable "environment" {
  description = "Settings that are no secret, by their variable's name."
  type        = map(string)
  default     = {}
  validation {
    condition     = alltrue([for k in keys(var.environment) : can(regex("^[A-Z][A-Z0-9_]*$", k))])
    error_message = "environment: names are upper-case letters, digits and _."
  }
  validation {
    condition     = alltrue([for k in keys(var.environment) : !can(regex("(PASSWORD|TOKEN|TOKENS|SECRET|PRIVATE_KEY)$", k))])
    error_message = "environment: a value whose name ends in PASSWORD, TOKEN, TOKENS, SECRET or PRIVATE_KEY belongs in secrets, where neither the state nor the function's configuration shows it."
  }
}

variable "secrets" {
  description = "Settings that are secret: the variable's name to the ARN of the Secrets Manager secret whose text is the value. The function reads them through the Parameters and Secrets extension, and again when they change."
  type        = map(string)
  default     = {}
  validation {
    condition     = alltrue([for k in keys(var.secrets) : can(regex("^[A-Z][A-Z0-9_]*$", k))])
    error_message = "secrets: names are upper-case letters, digits and _."
  }
  validation {
    condition     = alltrue([for v in values(var.secrets) : can(regex("^arn:[a-z-]+:[a-z-]+:[a-z0-9-]*:[0-9]*:[^ ]+$", v))])
    error_message = "secrets: each value is the ARN of a secret, never the secret."
  }
  validation {
    condition     = length(var.secrets) == 0 || var.secrets_extension_arn != null
    error_message = "secrets need secrets_extension_arn: without the extension nothing reads them."
  }
}

variable "secrets_extension_arn" {
  description = "ARN with version of the AWS Parameters and Secrets Lambda Extension's layer in this region and for this architecture. AWS lists them in the Secrets Manager user guide."
  type        = string
  default     = null
  validation {
    condition     = var.secrets_extension_arn == null || can(regex("^arn:[a-z-]+:lambda:[a-z0-9-]+:[0-9]{12}:layer:[A-Za-z0-9_-]+:[0-9]+$", var.secrets_extension_arn))
    error_message = "secrets_extension_arn must be a layer's ARN that ends in its version."
  }
}

variable "secret_prefixes" {
  description = "Name prefixes of Secrets Manager secrets that the function may also read: git credentials, one secret each, when there is no Kubernetes API to read them from."
  type        = list(string)
  default     = []
  validation {
    condition     = alltrue([for p in var.secret_prefixes : can(regex("^[A-Za-z0-9/_+=.@-]{3,}/$", p))])
    error_message = "secret_prefixes: each has at least three characters and a / at its end, so that it cannot open every secret of the account."
  }
}

variable "secrets_kms_key_arn" {
  description = "Key that encrypts the secrets, if it is not Secrets Manager's own."
  type        = string
  default     = null
  validation {
    condition     = var.secrets_kms_key_arn == null || can(regex("^arn:[a-z-]+:kms:", var.secrets_kms_key_arn))
    error_message = "secrets_kms_key_arn must be the ARN of a KMS key."
  }
}

variable "memory_mb" {
  description = "Memory in MB; the CPU share follows it."
  type        = number
  default     = 256
  validation {
    condition     = var.memory_mb >= 128 && var.memory_mb <= 10240 && floor(var.memory_mb) == var.memory_mb
    error_message = "memory_mb must be a whole number from 128 to 10240."
  }
}

variable "timeout_seconds" {
  description = "Longest run of one invocation, in seconds."
  type        = number
  default     = 30
  validation {
    condition     = var.timeout_seconds >= 1 && var.timeout_seconds <= 900
    error_message = "timeout_seconds must be from 1 to 900: that is Lambda's limit."
  }
}

variable "max_scale" {
  description = "How many copies may run at once (reserved concurrency). The account keeps 100 for everything that reserves nothing."
  type        = number
  default     = 5
  validation {
    condition     = var.max_scale >= 1 && var.max_scale <= 1000
    error_message = "max_scale must be from 1 to 1000; 0 would switch the function off."
  }
}

variable "log_retention_days" {
  description = "How long CloudWatch keeps the function's log, in days."
  type        = number
  default     = 30
  validation {
    condition     = contains([1, 3, 5, 7, 14, 30, 60, 90, 120, 150, 180, 365, 400, 545, 731, 1096, 1827, 2192, 2557, 2922, 3288, 3653], var.log_retention_days)
    error_message = "log_retention_days must be one of the periods CloudWatch offers (1, 3, 5, 7, 14, 30, 60, 90, ...); forever is not offered here."
  }
}

variable "vpc" {
  description = "Subnets and security groups to run in; null runs outside of any VPC. ElastiCache needs a VPC."
  type = object({
    subnet_ids         = list(string)
    security_group_ids = list(string)
  })
  default = null
  validation {
    condition     = try(length(var.vpc.subnet_ids) > 0 && length(var.vpc.security_group_ids) > 0, var.vpc == null)
    error_message = "vpc needs at least one subnet and one security group."
  }
}

variable "http" {
  description = "How the function is reached by HTTP; null: not at all. kind \"api\" is an HTTP API that throttles by rate and burst; kind \"url\" is a function URL, which only max_scale limits. Both are open to the internet, and the function checks the tokens."
  type = object({
    kind        = optional(string, "api")
    routes      = optional(list(string), ["$default"])
    rate_limit  = optional(number, 50)
    burst_limit = optional(number, 100)
  })
  default = null
  validation {
    condition     = var.http == null || contains(["api", "url"], try(var.http.kind, ""))
    error_message = "http.kind must be api or url."
  }
  validation {
    condition     = var.http == null || alltrue([for r in try(var.http.routes, []) : can(regex("^([$]default|(GET|POST) /[^ ]*)$", r))])
    error_message = "http.routes: each is \"$default\", \"GET /path\" or \"POST /path\"."
  }
  validation {
    condition     = var.http == null || (try(var.http.rate_limit, 0) >= 1 && try(var.http.burst_limit, 0) >= 1)
    error_message = "http.rate_limit and http.burst_limit must be at least 1 request per second."
  }
}

variable "async" {
  description = "Asynchronous invocations: how often and for how long an error is retried, and where the function's answer goes on success. kind is the service of the destination: sqs, sns, events or lambda."
  type = object({
    max_retries     = optional(number, 2)
    max_age_seconds = optional(number, 3600)
    on_success      = optional(object({ arn = string, kind = string }))
  })
  default = {}
  validation {
    condition     = var.async.max_retries >= 0 && var.async.max_retries <= 2
    error_message = "async.max_retries must be 0, 1 or 2: that is Lambda's limit."
  }
  validation {
    condition     = var.async.max_age_seconds >= 60 && var.async.max_age_seconds <= 21600
    error_message = "async.max_age_seconds must be from 60 to 21600."
  }
  validation {
    condition     = var.async.on_success == null || contains(["sqs", "sns", "events", "lambda"], try(var.async.on_success.kind, ""))
    error_message = "async.on_success.kind must be sqs, sns, events or lambda."
  }
}

variable "queue" {
  description = "A queue of wakes in front of the function; null: none. A message that fails max_receives times goes to the dead-letter queue; the good ones of its batch are not repeated. sender_arns are the EventBridge rules that may send; identities of this account need sqs:SendMessage only."
  type = object({
    batch_size      = optional(number, 10)
    window_seconds  = optional(number, 1)
    max_concurrency = optional(number, 2)
    max_receives    = optional(number, 5)
    sender_arns     = optional(list(string), [])
  })
  default = null
  validation {
    condition     = var.queue == null || (try(var.queue.batch_size, 0) >= 1 && try(var.queue.batch_size, 0) <= 1000)
    error_message = "queue.batch_size must be from 1 to 1000."
  }
  validation {
    condition     = var.queue == null || try(var.queue.batch_size <= 10 || var.queue.window_seconds >= 1, false)
    error_message = "queue.window_seconds must be at least 1 when queue.batch_size is above 10: that is SQS's rule."
  }
  validation {
    condition     = var.queue == null || (try(var.queue.window_seconds, -1) >= 0 && try(var.queue.window_seconds, 301) <= 300)
    error_message = "queue.window_seconds must be from 0 to 300."
  }
  validation {
    condition     = var.queue == null || try(var.queue.max_concurrency >= 2 && var.queue.max_concurrency <= var.max_scale, false)
    error_message = "queue.max_concurrency must be at least 2 and at most max_scale: more would be throttled, and throttled messages end in the dead-letter queue."
  }
  validation {
    condition     = var.queue == null || (try(var.queue.max_receives, 0) >= 1 && try(var.queue.max_receives, 1001) <= 1000)
    error_message = "queue.max_receives must be from 1 to 1000."
  }
}

variable "policy_statements" {
  description = "What else the function may do: IAM statements that allow."
  type = list(object({
    sid       = string
    actions   = list(string)
    resources = list(string)
  }))
  default = []
  validation {
    condition     = alltrue([for s in var.policy_statements : alltrue([for a in s.actions : can(regex("^[a-z0-9-]+:[A-Za-z]+$", a))])])
    error_message = "policy_statements: actions are named one by one (service:Action), never with *."
  }
  validation {
    condition     = alltrue([for s in var.policy_statements : !contains(s.resources, "*")])
    error_message = "policy_statements: resources are named, never *."
  }
}

variable "permissions_boundary_arn" {
  description = "Permissions boundary of the function's role, if the account asks for one."
  type        = string
  default     = null
  validation {
    condition     = var.permissions_boundary_arn == null || can(regex("^arn:[a-z-]+:iam::([0-9]{12}|aws):policy/", var.permissions_boundary_arn))
    error_message = "permissions_boundary_arn must be the ARN of an IAM policy."
  }
}

variable "alarms" {
  description = "SNS topics that are told of errors, throttles and dead letters, and how many errors in five minutes are too many. No topics: the alarms are there, and tell nobody."
  type = object({
    topic_arns = optional(list(string), [])
    errors     = optional(number, 3)
    throttles  = optional(number, 10)
  })
  default = {}
  validation {
    condition     = var.alarms.errors >= 1 && var.alarms.throttles >= 1
    error_message = "alarms.errors and alarms.throttles must be at least 1."
  }
}

variable "tags" {
  description = "Tags of everything that takes tags."
  type        = map(string)
  default     = {}
}
