locals {
  infra = "${path.module}/../../../infra/valkey"

  documents = { for d in [for t in split("\n---\n", file("${local.infra}/valkey.yaml")) : yamldecode(t)] : d.kind => d }
  set       = local.documents["StatefulSet"]
  pod       = local.set.spec.template.spec
  server    = local.pod.containers[0]
  users     = local.pod.initContainers[0]

  config = merge(
    { "valkey.conf" = file("${local.infra}/valkey.conf"), "users.sh" = file("${local.infra}/users.sh") },
    { for f in fileset("${local.infra}/acl", "*.acl") : f => file("${local.infra}/acl/${f}") },
  )

  # Settings that differ from the file's go on the command line, which comes after it.
  arguments = concat(
    ["--maxmemory", "${var.max_memory_mb}mb"],
    var.tls_secret == null ? [] : ["--port", "0", "--tls-port", "6379", "--tls-cert-file", "/etc/valkey-tls/tls.crt", "--tls-key-file", "/etc/valkey-tls/tls.key", "--tls-ca-cert-file", "/etc/valkey-tls/ca.crt", "--tls-auth-clients", "no"],
  )

  tls_mounts  = var.tls_secret == null ? [] : [{ name = "tls", mountPath = "/etc/valkey-tls", readOnly = true }]
  tls_volumes = [for s in [var.tls_secret] : { name = "tls", secret = { secretName = s } } if s != null]

  patched = merge(local.set, {
    spec = merge(local.set.spec, {
      template = merge(local.set.spec.template, {
        metadata = merge(local.set.spec.template.metadata, {
          # The pod is started anew when the rules change, as the users are written at its start.
          annotations = { "tidemark.dev/config" = sha256(jsonencode(local.config)) }
        })
        spec = merge(local.pod, {
          initContainers = [merge(local.users, {
            image = coalesce(var.image, local.users.image)
            env   = [{ name = "KEY_PREFIX", value = var.key_prefix }]
          })]
          containers = [merge(local.server, {
            image        = coalesce(var.image, local.server.image)
            command      = concat(local.server.command, local.arguments)
            resources    = merge(local.server.resources, { limits = { memory = "${var.max_memory_mb * 2}Mi" } })
            volumeMounts = concat(local.server.volumeMounts, local.tls_mounts)
          })]
          volumes = concat(
            [for v in local.pod.volumes : v if v.name != "passwords"],
            [{ name = "passwords", secret = { secretName = var.passwords_secret } }],
            local.tls_volumes,
          )
        })
      })
      volumeClaimTemplates = [for c in local.set.spec.volumeClaimTemplates : merge(c, {
        spec = merge(c.spec, { resources = { requests = { storage = var.storage.size } } }, var.storage.class == null ? {} : { storageClassName = var.storage.class })
      })]
    })
  })
}

resource "kubectl_manifest" "config" {
  yaml_body = yamlencode({
    apiVersion = "v1"
    kind       = "ConfigMap"
    metadata   = { namespace = local.set.metadata.namespace, name = "valkey" }
    data       = local.config
  })
  server_side_apply = true
}

resource "kubectl_manifest" "server" {
  yaml_body         = yamlencode(local.patched)
  server_side_apply = true
  wait_for_rollout  = false
  depends_on        = [kubectl_manifest.config]
}

resource "kubectl_manifest" "service" {
  yaml_body         = yamlencode(local.documents["Service"])
  server_side_apply = true
}
