mock_provider "kubectl" {}

run "the_server_of_infra_with_its_rules_and_no_password" {
  assert {
    condition     = contains(keys(yamldecode(kubectl_manifest.config.yaml_body).data), "watchcommit.acl") && contains(keys(yamldecode(kubectl_manifest.config.yaml_body).data), "users.sh")
    error_message = "the rules and what writes the users from them"
  }
  assert {
    condition     = yamldecode(kubectl_manifest.server.yaml_body).spec.template.spec.containers[0].command == ["valkey-server", "/etc/valkey/valkey.conf", "--aclfile", "/run/valkey/users.acl", "--dir", "/data", "--maxmemory", "256mb"]
    error_message = "the file first, then what differs"
  }
  assert {
    condition     = [for v in yamldecode(kubectl_manifest.server.yaml_body).spec.template.spec.volumes : v.secret.secretName if v.name == "passwords"] == ["tidemark-valkey"]
    error_message = "passwords come from a Secret that Terraform does not see"
  }
  assert {
    condition     = output.address == "valkey.tidemark.svc:6379" && output.environment == { REDIS_ADDR = "valkey.tidemark.svc:6379", REDIS_KEY_PREFIX = "gitops-reverser" }
    error_message = "the address is the Service's"
  }
  assert {
    condition     = contains(output.users, "auditingest")
    error_message = "a user a function"
  }
}

run "with_a_certificate_it_speaks_tls_only" {
  variables {
    tls_secret       = "valkey-tls"
    passwords_secret = "passwords"
    max_memory_mb    = 512
    key_prefix       = "prod"
    image            = "registry.example.com/valkey:8.1-alpine"
    storage          = { size = "4Gi", class = "fast" }
  }
  assert {
    condition     = strcontains(join(" ", yamldecode(kubectl_manifest.server.yaml_body).spec.template.spec.containers[0].command), "--port 0 --tls-port 6379 --tls-cert-file /etc/valkey-tls/tls.crt")
    error_message = "no port without TLS"
  }
  assert {
    condition     = contains([for m in yamldecode(kubectl_manifest.server.yaml_body).spec.template.spec.containers[0].volumeMounts : m.mountPath], "/etc/valkey-tls")
    error_message = "the certificate is mounted"
  }
  assert {
    condition     = output.environment.REDIS_TLS == "true" && output.environment.REDIS_KEY_PREFIX == "prod"
    error_message = "the functions are told"
  }
  assert {
    condition     = yamldecode(kubectl_manifest.server.yaml_body).spec.template.spec.initContainers[0].env == [{ name = "KEY_PREFIX", value = "prod" }] && yamldecode(kubectl_manifest.server.yaml_body).spec.template.spec.initContainers[0].image == "registry.example.com/valkey:8.1-alpine"
    error_message = "the users are limited to the prefix"
  }
  assert {
    condition     = yamldecode(kubectl_manifest.server.yaml_body).spec.volumeClaimTemplates[0].spec.storageClassName == "fast" && yamldecode(kubectl_manifest.server.yaml_body).spec.volumeClaimTemplates[0].spec.resources.requests.storage == "4Gi"
    error_message = "the volume is as asked for"
  }
  assert {
    condition     = yamldecode(kubectl_manifest.server.yaml_body).spec.template.spec.containers[0].resources.limits.memory == "1024Mi"
    error_message = "twice the data"
  }
}
