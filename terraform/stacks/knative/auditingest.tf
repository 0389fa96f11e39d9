module "auditingest" {
  source      = "../../modules/function-knative"
  name        = "auditingest"
  image       = var.images["auditingest"]
  environment = merge(local.store, { REDIS_USERNAME = local.users["auditingest"] })
  depends_on  = [kubectl_manifest.kubernetes]
}

# The name that stands in the API server's --audit-webhook-config-file.
resource "kubectl_manifest" "audit_domain" {
  for_each          = local.webhook_objects["audit"]
  yaml_body         = yamlencode(each.value)
  server_side_apply = true
  depends_on        = [module.auditingest]
}
