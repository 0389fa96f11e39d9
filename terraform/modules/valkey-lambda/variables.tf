variable "name" {
  description = "Name of the cache; its users are called NAME-FUNCTION."
  type        = string
  validation {
    condition     = can(regex("^[a-z][a-z0-9-]{0,22}$", var.name)) && !strcontains(var.name, "--") && !endswith(var.name, "-")
    error_message = "name must be 1 to 23 lower-case letters, digits and single -, beginning with a letter and not ending in -: users' names are built from it and may have 40."
  }
}

variable "engine_version" {
  description = "Major version of Valkey."
  type        = string
  default     = "8"
  validation {
    condition     = contains(["7", "8", "9"], var.engine_version)
    error_message = "engine_version must be 7, 8 or 9."
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
  description = "Two or three subnets, in different availability zones."
  type        = list(string)
  validation {
    condition     = length(distinct(var.subnet_ids)) >= 2 && length(var.subnet_ids) <= 3
    error_message = "subnet_ids must be two or three subnets: that is ElastiCache Serverless's rule."
  }
}

variable "users" {
  description = "One user a function: its access rules (infra/valkey/acl/FUNCTION.acl, with the key prefix filled in)."
  type        = map(string)
  validation {
    condition     = length(var.users) > 0 && alltrue([for k in keys(var.users) : can(regex("^[a-z][a-z0-9-]{0,15}$", k))])
    error_message = "users: at least one, each name 1 to 16 lower-case letters, digits and -."
  }
  validation {
    condition     = alltrue([for r in values(var.users) : can(regex("^on ~[^ *]+[*]( ~[^ *]+[*])* (resetchannels )?-@all( [+-][a-z|@]+)+$", r))])
    error_message = "users: rules read \"on ~PREFIX:* -@all +command ...\": a key pattern with a prefix, nothing allowed but the named commands."
  }
  validation {
    condition     = alltrue([for r in values(var.users) : !can(regex("[+](@all|@dangerous|@admin|keys|scan|flushall|flushdb|config)( |$)", r))])
    error_message = "users: no rule may allow @all, @dangerous, @admin, keys, scan, flushall, flushdb or config."
  }
}

variable "max_storage_gb" {
  description = "Upper bound of the data in GB; it bounds the bill. A fact has about 500 bytes and lives for ten minutes."
  type        = number
  default     = 1
  validation {
    condition     = var.max_storage_gb >= 1 && var.max_storage_gb <= 5000
    error_message = "max_storage_gb must be from 1 to 5000."
  }
}

variable "max_ecpu_per_second" {
  description = "Upper bound of processing units per second; it bounds the bill."
  type        = number
  default     = 5000
  validation {
    condition     = var.max_ecpu_per_second >= 1000 && var.max_ecpu_per_second <= 15000000
    error_message = "max_ecpu_per_second must be from 1000 to 15000000."
  }
}

variable "kms_key_arn" {
  description = "Key that encrypts the data at rest, if it is not AWS's own."
  type        = string
  default     = null
  validation {
    condition     = var.kms_key_arn == null || can(regex("^arn:[a-z-]+:kms:", var.kms_key_arn))
    error_message = "kms_key_arn must be the ARN of a KMS key."
  }
}

variable "alarm_topic_arns" {
  description = "SNS topics that are told when the cache is nearly full or throttles."
  type        = list(string)
  default     = []
  validation {
    condition     = alltrue([for a in var.alarm_topic_arns : can(regex("^arn:[a-z-]+:sns:", a))])
    error_message = "alarm_topic_arns must be ARNs of SNS topics."
  }
}

variable "tags" {
  description = "Tags of everything that takes tags."
  type        = map(string)
  default     = {}
}
