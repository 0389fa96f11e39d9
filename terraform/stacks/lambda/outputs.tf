output "audit_webhook_url" {
  description = "Where an API server that is not EKS posts its audit events, or null."
  value       = module.auditingest.url == null ? null : "${module.auditingest.url}/audit-webhook/${var.audit_route}"
}

output "admission_webhook_url" {
  description = "Where the API server sends admission reviews of command objects, or null."
  value       = module.authorcapture.url == null ? null : "${module.authorcapture.url}/validate-operator-types"
}

output "observations_url" {
  description = "Where refsweep's observations are read, or null."
  value       = module.refsweep.url == null ? null : "${module.refsweep.url}/observations"
}

output "who_url" {
  description = "Where one asks who changed an object, or null."
  value       = module.who.url == null ? null : "${module.who.url}/who"
}

output "wake_queue" {
  description = "Queue of wakes: any message sent there makes watchcommit look now."
  value       = module.watchcommit.wake_queue
}

output "moved_bus_name" {
  description = "EventBridge bus that carries what refsweep saw moving."
  value       = aws_cloudwatch_event_bus.moved.name
}

output "secrets" {
  description = "Secrets to fill, by name."
  value       = { for k, s in aws_secretsmanager_secret.token : k => s.name }
}

output "valkey_users" {
  description = "Each function's user name at the cache."
  value       = module.valkey.users
}
