module "authorcapture" {
  source      = "../../modules/function-knative"
  name        = "authorcapture"
  image       = var.images["authorcapture"]
  environment = merge(local.store, { REDIS_USERNAME = local.users["authorcapture"] })
  secrets     = try(var.webhooks.admission_token, false) ? { ADMISSION_TOKEN = { secret = "tidemark-tokens", key = "admission-token" } } : {}
  depends_on  = [kubectl_manifest.kubernetes]
}

resource "kubectl_manifest" "admission_domain" {
  for_each          = local.webhook_objects["admission"]
  yaml_body         = yamlencode(each.value)
  server_side_apply = true
  depends_on        = [module.authorcapture]
}

# The API server asks by name, not by Service: a Knative Service has no port that speaks TLS.
resource "kubectl_manifest" "admission" {
  count = var.webhooks == null ? 0 : 1
  yaml_body = yamlencode(merge(local.admission, {
    metadata = { name = local.admission.metadata.name }
    webhooks = [for w in local.admission.webhooks : merge(w, { clientConfig = merge(
      { url = "https://${var.webhooks.admission_domain}${w.clientConfig.service.path}" },
      var.webhooks.ca_bundle == null ? {} : { caBundle = var.webhooks.ca_bundle },
    ) })]
  }))
  server_side_apply = true
  depends_on        = [kubectl_manifest.admission_domain]
}

locals {
  admission = yamldecode(file("${local.infra}/kubernetes/admission/authorcapture.yaml"))

  webhook_names = var.webhooks == null ? {} : {
    "audit.tidemark.example.com"     = { webhook = "audit", domain = var.webhooks.audit_domain, tls = var.webhooks.audit_tls_secret }
    "admission.tidemark.example.com" = { webhook = "admission", domain = var.webhooks.admission_domain, tls = var.webhooks.admission_tls_secret }
  }

  # infra/knative/webhooks/domains.yaml with the names filled in.
  webhook_objects = { for webhook in ["audit", "admission"] : webhook => {
    for d in [for t in split("\n---\n", file("${local.infra}/knative/webhooks/domains.yaml")) : yamldecode(t)] :
    d.kind => merge(d,
      { metadata = merge(d.metadata, { name = local.webhook_names[d.metadata.name].domain }) },
      d.kind != "DomainMapping" ? {} : { spec = merge(d.spec, { tls = { secretName = local.webhook_names[d.metadata.name].tls } }) },
    ) if try(local.webhook_names[d.metadata.name].webhook, "") == webhook
  } }
}
