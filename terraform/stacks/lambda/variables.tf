variable "region" {
  description = "AWS region of everything here."
  type        = string
  validation {
    condition     = can(regex("^[a-z]{2}(-[a-z]+)+-[0-9]$", var.region))
    error_message = "region must be a region's code, such as eu-west-1."
  }
}

variable "name" {
  description = "Name that begins the name of everything here."
  type        = string
  default     = "tidemark"
  validation {
    condition     = can(regex("^[a-z][a-z0-9-]{0,22}$", var.name)) && !strcontains(var.name, "--") && !endswith(var.name, "-")
    error_message = "name must be 1 to 23 lower-case letters, digits and single -, beginning with a letter and not ending in -."
  }
}

variable "architecture" {
  description = "arm64 or x86_64; decides which of the packages of make lambda-zips are used."
  type        = string
  default     = "arm64"
  validation {
    condition     = contains(["arm64", "x86_64"], var.architecture)
    error_message = "architecture must be arm64 or x86_64."
  }
}

variable "packages_dir" {
  description = "Folder with FUNCTION-ARCHITECTURE.zip for each function; null: dist/lambda of this repository."
  type        = string
  default     = null
  validation {
    condition     = var.packages_dir == null || !endswith(coalesce(var.packages_dir, "x"), "/")
    error_message = "packages_dir must not end in /."
  }
}

variable "secrets_extension_arn" {
  description = "ARN with version of the AWS Parameters and Secrets Lambda Extension's layer in this region and for this architecture."
  type        = string
  validation {
    condition     = can(regex("^arn:[a-z-]+:lambda:[a-z0-9-]+:[0-9]{12}:layer:[A-Za-z0-9_-]+:[0-9]+$", var.secrets_extension_arn))
    error_message = "secrets_extension_arn must be a layer's ARN that ends in its version."
  }
}

variable "vpc_id" {
  description = "VPC of the subnets."
  type        = string
  validation {
    condition     = startswith(var.vpc_id, "vpc-")
    error_message = "vpc_id must begin with vpc-."
  }
}

variable "subnet_ids" {
  description = "Two or three private subnets in different zones, with a route out (NAT) to the git servers and to Secrets Manager."
  type        = list(string)
  validation {
    condition     = length(distinct(var.subnet_ids)) >= 2 && length(var.subnet_ids) <= 3
    error_message = "subnet_ids must be two or three subnets."
  }
}

variable "eks_cluster" {
  description = "Name of the EKS cluster whose changes are recorded. Its audit log must be switched on, and its authentication mode must include API."
  type        = string
  validation {
    condition     = can(regex("^[A-Za-z0-9][A-Za-z0-9_-]{0,99}$", var.eks_cluster))
    error_message = "eks_cluster must be a cluster's name."
  }
}

variable "audit_route" {
  description = "Route under which the cluster's audit events are filed: spec.auditRoute of the GitTargets."
  type        = string
  default     = "default"
  validation {
    condition     = can(regex("^[A-Za-z0-9._-]{1,63}$", var.audit_route))
    error_message = "audit_route must be one path segment of letters, digits, ., _ and -."
  }
}

variable "key_prefix" {
  description = "What every Valkey key begins with. The default is what gitops-reverser uses, so an existing keyspace can be shared."
  type        = string
  default     = "gitops-reverser"
  validation {
    condition     = can(regex("^[A-Za-z0-9_.:-]{1,128}$", var.key_prefix)) && !endswith(var.key_prefix, ":")
    error_message = "key_prefix must be 1 to 128 letters, digits, -, _, . and :, not ending in :."
  }
}

variable "webhooks" {
  description = "Whether the two webhooks get an address on the internet: an audit webhook for API servers that are not EKS, and the admission webhook that captures command authors. Each is an HTTP API, throttled. The first is opened by our tokens; the second asks for one only with admission_token, as EKS cannot send any."
  type = object({
    audit           = optional(bool, false)
    admission       = optional(bool, false)
    admission_token = optional(bool, false)
  })
  default = {}
  validation {
    condition     = var.webhooks.admission || !var.webhooks.admission_token
    error_message = "webhooks.admission_token needs webhooks.admission."
  }
}

variable "observations_address" {
  description = "Whether refsweep's observations can be read over HTTP, with READ_TOKEN."
  type        = bool
  default     = false
}

variable "who_address" {
  description = "Whether people can ask who changed an object over HTTP, with READ_TOKEN."
  type        = bool
  default     = false
}

variable "watch_every" {
  description = "When watchcommit looks by itself; between ticks it listens for watch_window_seconds."
  type        = string
  default     = "rate(1 minute)"
  validation {
    condition     = can(regex("^(rate|cron)\\(.+\\)$", var.watch_every))
    error_message = "watch_every must be rate(...) or cron(...)."
  }
}

variable "watch_window_seconds" {
  description = "How long a tick of watchcommit listens, in seconds; 0 catches up and leaves."
  type        = number
  default     = 55
  validation {
    condition     = var.watch_window_seconds >= 0 && var.watch_window_seconds <= 600
    error_message = "watch_window_seconds must be from 0 to 600: the function must end within Lambda's 15 minutes."
  }
}

variable "attribution_grace_seconds" {
  description = "How long a change waits for its author. EKS's audit log arrives within seconds, rarely later than a minute."
  type        = number
  default     = 45
  validation {
    condition     = var.attribution_grace_seconds >= 1 && var.attribution_grace_seconds <= 60
    error_message = "attribution_grace_seconds must be from 1 to 60: the API server may forget changes after 75 s."
  }
}

variable "sweep_every" {
  description = "When refsweep lists the refs of all repositories."
  type        = string
  default     = "rate(2 minutes)"
  validation {
    condition     = can(regex("^(rate|cron)\\(.+\\)$", var.sweep_every))
    error_message = "sweep_every must be rate(...) or cron(...)."
  }
}

variable "git_secrets_prefix" {
  description = "Prefix of the Secrets Manager secrets with git credentials: Secret NAMESPACE/NAME of a secretRef is the secret PREFIX + NAMESPACE/NAME, a JSON object of its keys. null: the cluster's Secrets are read."
  type        = string
  default     = null
  validation {
    condition     = var.git_secrets_prefix == null || can(regex("^[A-Za-z0-9/_+=.@-]{3,}/$", var.git_secrets_prefix))
    error_message = "git_secrets_prefix must have at least three characters and a / at its end."
  }
}

variable "lag_alarm_seconds" {
  description = "How long a change may wait until it is in git before an alarm is raised."
  type        = number
  default     = 300
  validation {
    condition     = var.lag_alarm_seconds > var.attribution_grace_seconds
    error_message = "lag_alarm_seconds must be more than attribution_grace_seconds: a change may wait that long for its author."
  }
}

variable "sweep_environment" {
  description = "Settings of refsweep beyond those of this stack (SWEEP_...); its README lists them."
  type        = map(string)
  default     = {}
  validation {
    condition     = alltrue([for k in keys(var.sweep_environment) : startswith(k, "SWEEP_")])
    error_message = "sweep_environment: every name begins with SWEEP_."
  }
}

variable "wake_rule_arns" {
  description = "EventBridge rules that may send wakes to watchcommit's queue."
  type        = list(string)
  default     = []
  validation {
    condition     = alltrue([for a in var.wake_rule_arns : can(regex("^arn:[a-z-]+:events:[^:]+:[0-9]+:rule/", a))])
    error_message = "wake_rule_arns must be ARNs of EventBridge rules."
  }
}

variable "alarm_topic_arns" {
  description = "SNS topics that are told when something fails."
  type        = list(string)
  default     = []
  validation {
    condition     = alltrue([for a in var.alarm_topic_arns : can(regex("^arn:[a-z-]+:sns:", a))])
    error_message = "alarm_topic_arns must be ARNs of SNS topics."
  }
}

variable "log_retention_days" {
  description = "How long logs are kept, in days."
  type        = number
  default     = 30
  validation {
    condition     = contains([1, 3, 5, 7, 14, 30, 60, 90, 120, 150, 180, 365, 400, 545, 731, 1096, 1827, 2192, 2557, 2922, 3288, 3653], var.log_retention_days)
    error_message = "log_retention_days must be one of the periods CloudWatch offers (1, 3, 5, 7, 14, 30, 60, 90, ...)."
  }
}
