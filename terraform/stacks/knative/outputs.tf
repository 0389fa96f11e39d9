output "audit_webhook_url" {
  description = "Where the API server posts audit events; add the route at the end. Inside the cluster unless webhooks names a domain."
  value       = var.webhooks == null ? "${module.auditingest.url}/audit-webhook/" : "https://${var.webhooks.audit_domain}/audit-webhook/"
}

output "observations_url" {
  description = "Where refsweep's observations are read, inside the cluster."
  value       = "${module.refsweep.url}/observations"
}

output "who_url" {
  description = "Where one asks who changed an object, inside the cluster."
  value       = "${module.who.url}/who"
}

output "wake_url" {
  description = "Any POST there, from inside the cluster, makes watchcommit look now."
  value       = module.watchcommit.url
}

output "redis_address" {
  description = "host:port of the store."
  value       = local.store.REDIS_ADDR
}
