module "watchcommit" {
  source = "../../modules/function-knative"
  name   = "watchcommit"
  image  = var.images["watchcommit"]
  every  = var.watch_every
  # Listen, wait for the authors of what came last, commit and push.
  timeout_seconds = min(600, var.watch_window_seconds + var.attribution_grace_seconds + 60)
  environment = merge(local.store, {
    REDIS_USERNAME    = local.users["watchcommit"]
    WATCH_WINDOW      = "${var.watch_window_seconds}s"
    ATTRIBUTION_GRACE = "${var.attribution_grace_seconds}s"
  })
  depends_on = [kubectl_manifest.kubernetes]
}

locals {
  wake = { for d in [for t in split("\n---\n", file("${local.infra}/knative/wake.yaml")) : yamldecode(t)] : d.kind => d }

  # Source and ClusterRole name the same kinds.
  wake_resources = var.wake_on == null ? [for r in local.wake["ApiServerSource"].spec.resources : { apiVersion = r.apiVersion, kind = r.kind }] : [for w in var.wake_on : { apiVersion = w.api_version, kind = w.kind }]
  wake_rules = var.wake_on == null ? [for r in local.wake["ClusterRole"].rules : { apiGroups = r.apiGroups, resources = r.resources, verbs = r.verbs }] : [for w in var.wake_on : {
    apiGroups = [length(split("/", w.api_version)) == 1 ? "" : split("/", w.api_version)[0]]
    resources = [w.resource]
    verbs     = ["get", "list", "watch"]
  }]
}

resource "kubectl_manifest" "wake" {
  for_each = local.wake
  yaml_body = yamlencode(merge(each.value,
    each.key != "ApiServerSource" ? {} : { spec = merge(each.value.spec, { resources = local.wake_resources }) },
    each.key != "ClusterRole" ? {} : { rules = local.wake_rules },
  ))
  server_side_apply = true
  depends_on        = [module.watchcommit]
}
