variable "kubeconfig" {
  description = "Kubeconfig file of a cluster with Knative Serving and Eventing."
  type        = string
  default     = "~/.kube/config"
  validation {
    condition     = length(var.kubeconfig) > 0
    error_message = "kubeconfig must be a file's path."
  }
}

variable "context" {
  description = "Context in the kubeconfig; null: the current one."
  type        = string
  default     = null
}

variable "images" {
  description = "Image of each function, with a tag or, better, a digest (make images)."
  type        = map(string)
  validation {
    condition     = toset(keys(var.images)) == toset(["auditingest", "authorcapture", "refsweep", "watchcommit", "who"])
    error_message = "images must name auditingest, authorcapture, refsweep, watchcommit and who."
  }
}

variable "valkey" {
  description = "The Valkey that is made in the cluster; null: none, and redis says where there is one."
  type = object({
    image         = optional(string)
    max_memory_mb = optional(number, 256)
    storage       = optional(object({ size = optional(string, "1Gi"), class = optional(string) }), {})
    tls_secret    = optional(string)
  })
  default = {}
}

variable "redis" {
  description = "A Valkey or Redis that is there already: host:port (several, comma-separated, mean Cluster), TLS, and its users' names if they are not the functions'."
  type = object({
    address = string
    tls     = optional(bool, true)
    users   = optional(map(string), {})
  })
  default = null
  validation {
    condition     = (var.redis == null) != (var.valkey == null)
    error_message = "Exactly one of valkey and redis must be set; the other is null."
  }
  validation {
    condition     = var.redis == null || can(regex("^[^@/ ,]+:[0-9]+(,[^@/ ,]+:[0-9]+)*$", var.redis.address))
    error_message = "redis.address must be host:port, several apart by commas, without scheme and credentials."
  }
}

variable "key_prefix" {
  description = "What every key begins with. The default is what gitops-reverser uses, so an existing keyspace can be shared."
  type        = string
  default     = "gitops-reverser"
  validation {
    condition     = can(regex("^[A-Za-z0-9_.:-]{1,128}$", var.key_prefix)) && !endswith(var.key_prefix, ":")
    error_message = "key_prefix must be 1 to 128 letters, digits, -, _, . and :, not ending in :."
  }
}

variable "git_secrets" {
  description = "Secrets of namespace tidemark with git credentials; watchcommit and refsweep may read these and no others."
  type        = list(string)
  default     = ["cfg-git"]
  validation {
    condition     = length(var.git_secrets) > 0 && alltrue([for s in var.git_secrets : can(regex("^[a-z0-9]([a-z0-9.-]*[a-z0-9])?$", s))])
    error_message = "git_secrets must be names of Secrets, at least one: a rule without names would open all."
  }
}

variable "watch_every" {
  description = "When watchcommit looks by itself, as cron of five fields; between ticks it listens for watch_window_seconds."
  type        = string
  default     = "* * * * *"
  validation {
    condition     = can(regex("^[^ ]+( [^ ]+){4}$", var.watch_every))
    error_message = "watch_every must be a cron expression of five fields."
  }
}

variable "watch_window_seconds" {
  description = "How long a tick of watchcommit listens, in seconds; 0 catches up and leaves."
  type        = number
  default     = 55
  validation {
    condition     = var.watch_window_seconds >= 0 && var.watch_window_seconds <= 480
    error_message = "watch_window_seconds must be from 0 to 480: with grace and push it must stay within Knative's 600 s."
  }
}

variable "attribution_grace_seconds" {
  description = "How long a change waits for its author."
  type        = number
  default     = 45
  validation {
    condition     = var.attribution_grace_seconds >= 1 && var.attribution_grace_seconds <= 60
    error_message = "attribution_grace_seconds must be from 1 to 60: the API server may forget changes after 75 s."
  }
}

variable "wake_on" {
  description = "Kinds whose changes wake watchcommit at once; null: those of infra/knative/wake.yaml. resource is the plural name that RBAC wants."
  type        = list(object({ api_version = string, kind = string, resource = string }))
  default     = null
  validation {
    condition     = var.wake_on == null || alltrue([for w in coalesce(var.wake_on, []) : can(regex("^([a-z0-9.-]+/)?v[0-9][a-z0-9]*$", w.api_version)) && can(regex("^[A-Z][A-Za-z0-9]*$", w.kind)) && can(regex("^[a-z0-9]+$", w.resource))])
    error_message = "wake_on: api_version such as apps/v1, kind such as Deployment, resource such as deployments."
  }
  validation {
    condition     = var.wake_on == null || length(coalesce(var.wake_on, [])) > 0
    error_message = "wake_on must name a kind; null takes the default."
  }
  validation {
    condition     = var.wake_on == null || !contains([for w in coalesce(var.wake_on, []) : w.resource], "secrets")
    error_message = "wake_on must not name secrets: they are not even watched."
  }
}

variable "sweep_every" {
  description = "When refsweep lists the refs of all repositories, as cron of five fields."
  type        = string
  default     = "*/2 * * * *"
  validation {
    condition     = can(regex("^[^ ]+( [^ ]+){4}$", var.sweep_every))
    error_message = "sweep_every must be a cron expression of five fields."
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

variable "moved_sink_url" {
  description = "Where refsweep posts a CloudEvent when something moved, a broker's address for example; null: nowhere, and who wants to know asks for the observations."
  type        = string
  default     = null
  validation {
    condition     = var.moved_sink_url == null || can(regex("^https?://[^/@ ]+(/[^ ]*)?$", var.moved_sink_url))
    error_message = "moved_sink_url must be an http or https address without credentials."
  }
}

variable "webhooks" {
  description = "Names with TLS under which the API server reaches the two webhooks, and the Secrets with their certificates (infra/knative/webhooks); null: the API server reaches them some other way. admission_token asks for the token in Secret tidemark-tokens, key admission-token, which an API server sends only when its own configuration holds it (infra/knative/README.md)."
  type = object({
    audit_domain         = string
    admission_domain     = string
    audit_tls_secret     = optional(string, "auditingest-tls")
    admission_tls_secret = optional(string, "authorcapture-tls")
    ca_bundle            = optional(string)
    admission_token      = optional(bool, false)
  })
  default = null
  validation {
    condition     = var.webhooks == null || alltrue([for d in [try(var.webhooks.audit_domain, ""), try(var.webhooks.admission_domain, "")] : can(regex("^[a-z0-9]([a-z0-9-]*[a-z0-9])?([.][a-z0-9]([a-z0-9-]*[a-z0-9])?)+$", d))])
    error_message = "webhooks: both domains must be DNS names."
  }
  validation {
    condition     = try(var.webhooks.audit_domain, "a") != try(var.webhooks.admission_domain, "b")
    error_message = "webhooks: the two domains must differ."
  }
  validation {
    condition     = try(var.webhooks.ca_bundle, null) == null || can(base64decode(var.webhooks.ca_bundle))
    error_message = "webhooks.ca_bundle must be PEM in base64; null trusts the API server's own authorities."
  }
}

variable "ingress_namespace" {
  description = "Namespace of Knative's ingress, which the NetworkPolicy lets in."
  type        = string
  default     = "kourier-system"
  validation {
    condition     = can(regex("^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$", var.ingress_namespace))
    error_message = "ingress_namespace must be a namespace's name."
  }
}
