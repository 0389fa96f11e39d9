output "address" {
  description = "host:port, for REDIS_ADDR."
  value       = "${local.documents["Service"].metadata.name}.${local.documents["Service"].metadata.namespace}.svc:${local.documents["Service"].spec.ports[0].port}"
}

output "environment" {
  description = "Settings that every function needs to reach it, but for its own user and password."
  value = merge(
    {
      REDIS_ADDR       = "${local.documents["Service"].metadata.name}.${local.documents["Service"].metadata.namespace}.svc:${local.documents["Service"].spec.ports[0].port}"
      REDIS_KEY_PREFIX = var.key_prefix
    },
    var.tls_secret == null ? {} : { REDIS_TLS = "true" },
  )
}

output "users" {
  description = "The users' names: one a function."
  value       = toset([for f in fileset("${local.infra}/acl", "*.acl") : trimsuffix(f, ".acl")])
}
