variable "image" {
  description = "Image of Valkey 7.2 or newer, with a tag or a digest. It needs a shell and sha256sum, as the alpine ones have."
  type        = string
  default     = null
  validation {
    condition     = var.image == null || can(regex("^[a-z0-9][^ ]*(@sha256:[0-9a-f]{64}|:[A-Za-z0-9_][A-Za-z0-9_.-]{0,127})$", var.image))
    error_message = "image must end in :TAG or @sha256:DIGEST."
  }
}

variable "key_prefix" {
  description = "What every key begins with; the users are limited to it."
  type        = string
  default     = "gitops-reverser"
  validation {
    condition     = can(regex("^[A-Za-z0-9_.:-]{1,128}$", var.key_prefix)) && !endswith(var.key_prefix, ":")
    error_message = "key_prefix must be 1 to 128 letters, digits, -, _, . and :, not ending in :."
  }
}

variable "passwords_secret" {
  description = "Secret with one key a function: the password of its user. It is made outside of Terraform, so that no password is in the state."
  type        = string
  default     = "tidemark-valkey"
  validation {
    condition     = can(regex("^[a-z0-9]([a-z0-9.-]*[a-z0-9])?$", var.passwords_secret))
    error_message = "passwords_secret must be the name of a Secret."
  }
}

variable "tls_secret" {
  description = "Secret with tls.crt, tls.key and ca.crt for valkey.tidemark.svc (cert-manager makes such); null: no TLS, and the NetworkPolicy is what keeps others away."
  type        = string
  default     = null
  validation {
    condition     = var.tls_secret == null || can(regex("^[a-z0-9]([a-z0-9.-]*[a-z0-9])?$", var.tls_secret))
    error_message = "tls_secret must be the name of a Secret."
  }
}

variable "max_memory_mb" {
  description = "Most that Valkey holds, in MB. A fact has about 500 bytes and lives for ten minutes. The container may use twice as much, for the rewrite of its log."
  type        = number
  default     = 256
  validation {
    condition     = var.max_memory_mb >= 32 && var.max_memory_mb <= 65536 && floor(var.max_memory_mb) == var.max_memory_mb
    error_message = "max_memory_mb must be a whole number from 32 to 65536."
  }
}

variable "storage" {
  description = "Size of the volume and its storage class; null: the cluster's default class."
  type        = object({ size = optional(string, "1Gi"), class = optional(string) })
  default     = {}
  validation {
    condition     = can(regex("^[1-9][0-9]*(Mi|Gi|Ti)$", var.storage.size))
    error_message = "storage.size must be a number with Mi, Gi or Ti."
  }
}
