locals {
  infra = "${path.module}/../../../infra"

  # What infra/kubernetes lists is what a cluster needs; it is read, never repeated.
  kubernetes = { for d in flatten([
    for f in yamldecode(file("${local.infra}/kubernetes/kustomization.yaml")).resources :
    [for t in split("\n---\n", file("${local.infra}/kubernetes/${f}")) : { object = yamldecode(t) }]
  ]) : "${d.object.kind}/${try(d.object.metadata.namespace, "_")}/${d.object.metadata.name}" => d.object }

  foundation = ["Namespace", "CustomResourceDefinition"]

  git_credentials = "Role/tidemark/tidemark-git-credentials"

  # Every function finds the store; its own user and password are in its manifest.
  store = var.valkey != null ? module.valkey[0].environment : merge(
    { REDIS_ADDR = var.redis.address, REDIS_KEY_PREFIX = var.key_prefix },
    var.redis.tls ? { REDIS_TLS = "true" } : {},
  )
  users = { for f in keys(var.images) : f => try(var.redis.users[f], f) }
}

resource "kubectl_manifest" "foundation" {
  for_each          = { for k, d in local.kubernetes : k => d if contains(local.foundation, d.kind) }
  yaml_body         = yamlencode(each.value)
  server_side_apply = true
}

resource "kubectl_manifest" "kubernetes" {
  for_each = { for k, d in local.kubernetes : k => d if !contains(local.foundation, d.kind) }
  yaml_body = yamlencode(each.key != local.git_credentials ? each.value : merge(each.value, {
    rules = [for r in each.value.rules : merge(r, { resourceNames = var.git_secrets })]
  }))
  server_side_apply = true
  depends_on        = [kubectl_manifest.foundation]
}

resource "kubectl_manifest" "network" {
  for_each = { for d in [
    for t in split("\n---\n", replace(file("${local.infra}/knative/networkpolicy.yaml"), "kourier-system", var.ingress_namespace)) : yamldecode(t)
  ] : d.metadata.name => d }
  yaml_body         = yamlencode(each.value)
  server_side_apply = true
  depends_on        = [kubectl_manifest.foundation]
}
