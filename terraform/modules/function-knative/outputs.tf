output "name" {
  description = "Name of the function."
  value       = kubectl_manifest.service.name
}

output "identity" {
  description = "Who the function is: its service account, as NAMESPACE:NAME."
  value       = "${local.service.metadata.namespace}:${local.revision.serviceAccountName}"
}

output "url" {
  description = "Address inside the cluster, without a trailing slash."
  value       = "http://${local.service.metadata.name}.${local.service.metadata.namespace}.svc.cluster.local"
}
