variable "name" {
  description = "Name of the function: the Knative Service in the manifest."
  type        = string
  validation {
    condition     = can(regex("^[a-z][a-z0-9-]{0,47}$", var.name))
    error_message = "name must be 1 to 48 lower-case letters, digits and -, beginning with a letter."
  }
}

variable "manifest" {
  description = "The function's manifest as YAML: its Service, and what goes with it. null: infra/knative/NAME.yaml of this repository. What is null below stays as the manifest has it."
  type        = string
  default     = null
  validation {
    condition     = var.manifest == null || can([for d in split("\n---\n", var.manifest) : yamldecode(d).kind])
    error_message = "manifest must be YAML documents that have a kind, apart by lines of ---."
  }
}

variable "image" {
  description = "Image with a tag or, better, a digest."
  type        = string
  validation {
    condition     = can(regex("^[a-z0-9][^ ]*(@sha256:[0-9a-f]{64}|:[A-Za-z0-9_][A-Za-z0-9_.-]{0,127})$", var.image))
    error_message = "image must end in :TAG or @sha256:DIGEST."
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
    error_message = "environment: a value whose name ends in PASSWORD, TOKEN, TOKENS, SECRET or PRIVATE_KEY belongs in secrets, where neither the state nor the Service shows it."
  }
}

variable "secrets" {
  description = "Settings that are secret: the variable's name to a key of a Secret in the same namespace. The Secret is mounted, and the function reads it again when it changes."
  type        = map(object({ secret = string, key = string }))
  default     = {}
  validation {
    condition     = alltrue([for k in keys(var.secrets) : can(regex("^[A-Z][A-Z0-9_]*$", k))])
    error_message = "secrets: names are upper-case letters, digits and _."
  }
  validation {
    condition     = alltrue([for s in values(var.secrets) : can(regex("^[a-z0-9]([a-z0-9.-]*[a-z0-9])?$", s.secret)) && can(regex("^[A-Za-z0-9._-]+$", s.key))])
    error_message = "secrets: each value names a Secret and a key in it."
  }
}

variable "config_files" {
  description = "ConfigMaps to mount, by path: a targets file, for example. Each is {config_map, key}, and the file is PATH/KEY."
  type        = map(object({ config_map = string, key = string }))
  default     = {}
  validation {
    condition     = alltrue([for p in keys(var.config_files) : can(regex("^/[a-z0-9/._-]+[a-z0-9]$", p))])
    error_message = "config_files: each path is absolute and does not end in /."
  }
}

variable "memory_mb" {
  description = "Limit of the function's memory in MB."
  type        = number
  default     = null
  validation {
    condition     = var.memory_mb == null || try(var.memory_mb >= 32 && var.memory_mb <= 8192, false)
    error_message = "memory_mb must be from 32 to 8192."
  }
}

variable "timeout_seconds" {
  description = "Longest run of one request, in seconds."
  type        = number
  default     = null
  validation {
    condition     = var.timeout_seconds == null || try(var.timeout_seconds >= 1 && var.timeout_seconds <= 600, false)
    error_message = "timeout_seconds must be from 1 to 600: that is Knative's limit, unless max-revision-timeout-seconds is raised."
  }
}

variable "min_scale" {
  description = "How many copies are kept although nobody calls."
  type        = number
  default     = null
  validation {
    condition     = var.min_scale == null || try(var.min_scale >= 0 && var.min_scale <= 10, false)
    error_message = "min_scale must be from 0 to 10."
  }
}

variable "max_scale" {
  description = "How many copies may run at once."
  type        = number
  default     = null
  validation {
    condition     = var.max_scale == null || try(var.max_scale >= 1 && var.max_scale <= 1000, false)
    error_message = "max_scale must be from 1 to 1000; Knative reads 0 as no limit."
  }
  validation {
    condition     = var.max_scale == null || var.min_scale == null || try(var.max_scale >= var.min_scale, false)
    error_message = "max_scale must be at least min_scale."
  }
}

variable "concurrency" {
  description = "How many requests one copy serves at once."
  type        = number
  default     = null
  validation {
    condition     = var.concurrency == null || try(var.concurrency >= 1 && var.concurrency <= 1000, false)
    error_message = "concurrency must be from 1 to 1000."
  }
}

variable "public" {
  description = "Whether the function gets an address outside the cluster."
  type        = bool
  default     = false
}

variable "every" {
  description = "Cron expression (five fields) of the PingSources in the manifest."
  type        = string
  default     = null
  validation {
    condition     = var.every == null || can(regex("^[^ ]+( [^ ]+){4}$", var.every))
    error_message = "every must be a cron expression of five fields, such as */2 * * * *."
  }
}

variable "labels" {
  description = "Labels of everything in the manifest."
  type        = map(string)
  default     = {}
  validation {
    condition     = alltrue([for k, v in var.labels : can(regex("^[A-Za-z0-9]([A-Za-z0-9./_-]*[A-Za-z0-9])?$", k)) && can(regex("^([A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?)?$", v))])
    error_message = "labels: names and values must be what Kubernetes takes for labels."
  }
}
