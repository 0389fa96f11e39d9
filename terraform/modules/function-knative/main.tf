locals {
  documents = [for d in split("\n---\n", coalesce(var.manifest, try(file("${path.module}/../../../infra/knative/${var.name}.yaml"), "kind: none"))) : yamldecode(d)]

  service  = one([for d in local.documents : d if try(d.kind, "") == "Service" && startswith(try(d.apiVersion, ""), "serving.knative.dev/")])
  template = local.service.spec.template
  revision = local.template.spec
  function = local.revision.containers[0]
}

locals {
  annotations = merge(
    try(local.template.metadata.annotations, {}),
    var.min_scale == null ? {} : { "autoscaling.knative.dev/min-scale" = tostring(var.min_scale) },
    var.max_scale == null ? {} : { "autoscaling.knative.dev/max-scale" = tostring(var.max_scale) },
  )

  labels = merge(
    { for k, v in try(local.service.metadata.labels, {}) : k => v if k != "networking.knative.dev/visibility" },
    var.public ? {} : { "networking.knative.dev/visibility" = "cluster-local" },
    var.labels,
  )

  # A variable that is set here replaces the manifest's, also when one is a value and the other a file.
  secret_files = { for k, s in var.secrets : "${k}_FILE" => "/etc/tidemark/secrets/${lower(k)}/${s.key}" }
  replaced     = concat(keys(var.environment), [for k in keys(var.environment) : "${k}_FILE"], keys(local.secret_files), keys(var.secrets))
  env = concat(
    [for e in local.function.env : e if !contains(local.replaced, e.name)],
    [for k, v in merge(var.environment, local.secret_files) : { name = k, value = v }],
  )

  volumes = concat(
    try(local.revision.volumes, []),
    [for k, s in var.secrets : { name = "secret-${replace(lower(k), "_", "-")}", secret = { secretName = s.secret, items = [{ key = s.key, path = s.key }] } }],
    [for p, c in var.config_files : { name = "config-${substr(sha1(p), 0, 8)}", configMap = { name = c.config_map, items = [{ key = c.key, path = c.key }] } }],
  )
  mounts = concat(
    try(local.function.volumeMounts, []),
    [for k, s in var.secrets : { name = "secret-${replace(lower(k), "_", "-")}", mountPath = "/etc/tidemark/secrets/${lower(k)}", readOnly = true }],
    [for p, c in var.config_files : { name = "config-${substr(sha1(p), 0, 8)}", mountPath = p, readOnly = true }],
  )

  container = merge(local.function, {
    image        = var.image
    env          = local.env
    volumeMounts = local.mounts
    resources = merge(local.function.resources, var.memory_mb == null ? {} : {
      limits = merge(local.function.resources.limits, { memory = "${var.memory_mb}Mi" })
    })
  })

  patched = merge(local.service, {
    metadata = merge(local.service.metadata, { labels = local.labels })
    spec = merge(local.service.spec, {
      template = merge(local.template, {
        metadata = merge(try(local.template.metadata, {}), { annotations = local.annotations })
        spec = merge(local.revision,
          { containers = [local.container], volumes = local.volumes },
          var.concurrency == null ? {} : { containerConcurrency = var.concurrency },
          var.timeout_seconds == null ? {} : { timeoutSeconds = var.timeout_seconds, responseStartTimeoutSeconds = var.timeout_seconds },
        )
      })
    })
  })

  # What goes with the Service: sources, service accounts.
  others = { for d in local.documents : "${d.kind}/${d.metadata.name}" => d if !(d.kind == "Service" && startswith(d.apiVersion, "serving.knative.dev/")) }
}

resource "kubectl_manifest" "service" {
  yaml_body         = yamlencode(local.patched)
  server_side_apply = true
  wait_for_rollout  = false

  lifecycle {
    precondition {
      condition     = local.service.metadata.name == var.name
      error_message = "The manifest must hold one Knative Service whose name is ${var.name}."
    }
  }
}

resource "kubectl_manifest" "other" {
  for_each = local.others
  yaml_body = yamlencode(merge(each.value, {
    metadata = merge(each.value.metadata, length(var.labels) == 0 ? {} : { labels = merge(try(each.value.metadata.labels, {}), var.labels) })
    }, each.value.kind == "PingSource" && var.every != null ? {
    spec = merge(each.value.spec, { schedule = var.every })
  } : {}))
  server_side_apply = true
  wait_for_rollout  = false

  # A source refers to the Service as its sink.
  depends_on = [kubectl_manifest.service]
}
