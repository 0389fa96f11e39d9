mock_provider "kubectl" {}

variables {
  name  = "watchcommit"
  image = "registry.example.com/tidemark/watchcommit:v1"
}

run "the_manifest_of_infra_is_taken_as_it_is_but_for_the_image" {
  assert {
    condition     = yamldecode(kubectl_manifest.service.yaml_body).spec.template.spec.containers[0].image == "registry.example.com/tidemark/watchcommit:v1"
    error_message = "the image is set"
  }
  assert {
    condition     = merge(yamldecode(kubectl_manifest.service.yaml_body).spec.template.spec, { containers = null, volumes = null }) == merge(local.revision, { containers = null, volumes = null })
    error_message = "timeout, concurrency and service account are the manifest's"
  }
  assert {
    condition     = yamldecode(kubectl_manifest.service.yaml_body).spec.template.spec.timeoutSeconds > 30
    error_message = "a drain may be longer than 30 s"
  }
  assert {
    condition     = yamldecode(kubectl_manifest.service.yaml_body).metadata.labels["networking.knative.dev/visibility"] == "cluster-local"
    error_message = "no address outside the cluster unless asked for"
  }
  assert {
    condition     = keys(kubectl_manifest.other) == ["PingSource/watchcommit"] && yamldecode(kubectl_manifest.other["PingSource/watchcommit"].yaml_body).spec.schedule == "* * * * *"
    error_message = "the tick is there"
  }
  assert {
    condition     = output.url == "http://watchcommit.tidemark.svc.cluster.local" && output.identity == "tidemark:watchcommit"
    error_message = "address and identity"
  }
}

run "what_is_given_replaces_what_the_manifest_says" {
  variables {
    environment     = { WATCH_WINDOW = "20s", REDIS_ADDR = "cache.example.com:6379" }
    secrets         = { REDIS_PASSWORD = { secret = "cache", key = "password" } }
    config_files    = { "/etc/tidemark/targets" = { config_map = "targets", key = "targets.yaml" } }
    memory_mb       = 256
    timeout_seconds = 120
    min_scale       = 1
    max_scale       = 2
    concurrency     = 8
    every           = "*/5 * * * *"
    labels          = { team = "platform" }
  }
  assert {
    condition = { for e in yamldecode(kubectl_manifest.service.yaml_body).spec.template.spec.containers[0].env : e.name => e.value } == {
      LISTEN_ADDRESS      = "[::]:8080"
      REDIS_USERNAME      = "watchcommit"
      ATTRIBUTION_GRACE   = "45s"
      WATCH_WINDOW        = "20s"
      REDIS_ADDR          = "cache.example.com:6379"
      REDIS_PASSWORD_FILE = "/etc/tidemark/secrets/redis_password/password"
    }
    error_message = "each variable once, ours before the manifest's"
  }
  assert {
    condition     = contains([for v in yamldecode(kubectl_manifest.service.yaml_body).spec.template.spec.volumes : try(v.secret.secretName, "")], "cache") && contains([for v in yamldecode(kubectl_manifest.service.yaml_body).spec.template.spec.volumes : try(v.configMap.name, "")], "targets")
    error_message = "Secret and ConfigMap are mounted"
  }
  assert {
    condition     = contains([for m in yamldecode(kubectl_manifest.service.yaml_body).spec.template.spec.containers[0].volumeMounts : m.mountPath], "/etc/tidemark/targets")
    error_message = "where they were asked for"
  }
  assert {
    condition     = yamldecode(kubectl_manifest.service.yaml_body).spec.template.metadata.annotations == { "autoscaling.knative.dev/min-scale" = "1", "autoscaling.knative.dev/max-scale" = "2" }
    error_message = "scale bounds are texts"
  }
  assert {
    condition     = yamldecode(kubectl_manifest.service.yaml_body).spec.template.spec.containerConcurrency == 8 && yamldecode(kubectl_manifest.service.yaml_body).spec.template.spec.timeoutSeconds == 120 && yamldecode(kubectl_manifest.service.yaml_body).spec.template.spec.containers[0].resources.limits.memory == "256Mi"
    error_message = "concurrency, timeout and memory"
  }
  assert {
    condition     = yamldecode(kubectl_manifest.other["PingSource/watchcommit"].yaml_body).spec.schedule == "*/5 * * * *" && yamldecode(kubectl_manifest.other["PingSource/watchcommit"].yaml_body).metadata.labels.team == "platform"
    error_message = "the tick follows"
  }
}

run "a_public_function_has_no_visibility_label" {
  variables {
    name   = "auditingest"
    public = true
  }
  assert {
    condition     = !contains(keys(yamldecode(kubectl_manifest.service.yaml_body).metadata.labels), "networking.knative.dev/visibility")
    error_message = "Knative then gives it an address"
  }
}
