mock_provider "kubectl" {}

variables {
  images = {
    auditingest   = "registry.example.com/tidemark/auditingest:v1"
    authorcapture = "registry.example.com/tidemark/authorcapture:v1"
    refsweep      = "registry.example.com/tidemark/refsweep:v1"
    watchcommit   = "registry.example.com/tidemark/watchcommit:v1"
    who           = "registry.example.com/tidemark/who:v1"
  }
}

run "what_infra_lists_is_applied_and_nothing_is_open" {
  assert {
    condition     = contains(keys(kubectl_manifest.foundation), "Namespace/_/tidemark") && contains(keys(kubectl_manifest.foundation), "CustomResourceDefinition/_/gittargets.tidemark.dev")
    error_message = "namespace and custom resources come first"
  }
  assert {
    condition     = contains(keys(kubectl_manifest.kubernetes), "ServiceAccount/tidemark/watchcommit")
    error_message = "then RBAC"
  }
  assert {
    condition     = length(kubectl_manifest.admission) == 0 && length(kubectl_manifest.audit_domain) == 0
    error_message = "no domain unless asked for"
  }
  assert {
    condition     = output.redis_address == "valkey.tidemark.svc:6379"
    error_message = "the functions use the Valkey of this stack"
  }
  assert {
    condition     = contains(keys(kubectl_manifest.network), "nobody")
    error_message = "by default nobody may talk to anything here"
  }
}

run "the_wake_is_a_reference_and_its_role_fits" {
  assert {
    condition     = yamldecode(kubectl_manifest.wake["ApiServerSource"].yaml_body).spec.mode == "Reference"
    error_message = "an event says look now, not what"
  }
  assert {
    condition     = toset([for r in yamldecode(kubectl_manifest.wake["ApiServerSource"].yaml_body).spec.resources : "${lower(r.kind)}s"]) == toset(flatten([for r in yamldecode(kubectl_manifest.wake["ClusterRole"].yaml_body).rules : r.resources]))
    error_message = "what it watches, its role may watch"
  }
}

run "other_kinds_may_wake" {
  variables {
    wake_on = [
      { api_version = "v1", kind = "ConfigMap", resource = "configmaps" },
      { api_version = "networking.k8s.io/v1", kind = "Ingress", resource = "ingresses" },
    ]
  }
  assert {
    condition     = yamldecode(kubectl_manifest.wake["ClusterRole"].yaml_body).rules == [{ apiGroups = [""], resources = ["configmaps"], verbs = ["get", "list", "watch"] }, { apiGroups = ["networking.k8s.io"], resources = ["ingresses"], verbs = ["get", "list", "watch"] }]
    error_message = "the role follows"
  }
  assert {
    condition     = [for r in yamldecode(kubectl_manifest.wake["ApiServerSource"].yaml_body).spec.resources : r.kind] == ["ConfigMap", "Ingress"]
    error_message = "the source follows"
  }
}

run "only_the_named_secrets_can_be_read" {
  variables {
    git_secrets = ["git-one", "git-two"]
  }
  assert {
    condition     = yamldecode(kubectl_manifest.kubernetes["Role/tidemark/tidemark-git-credentials"].yaml_body).rules[0].resourceNames == ["git-one", "git-two"]
    error_message = "by name"
  }
}

run "webhooks_are_reached_by_name_with_tls" {
  variables {
    webhooks = { audit_domain = "audit.example.com", admission_domain = "admission.example.com", admission_tls_secret = "own", ca_bundle = "LS0t" }
  }
  assert {
    condition     = yamldecode(kubectl_manifest.admission[0].yaml_body).webhooks[0].clientConfig == { url = "https://admission.example.com/validate-operator-types", caBundle = "LS0t" }
    error_message = "the API server asks by name"
  }
  assert {
    condition     = yamldecode(kubectl_manifest.admission_domain["DomainMapping"].yaml_body).metadata.name == "admission.example.com" && yamldecode(kubectl_manifest.admission_domain["DomainMapping"].yaml_body).spec.tls.secretName == "own" && yamldecode(kubectl_manifest.admission_domain["DomainMapping"].yaml_body).spec.ref.name == "authorcapture"
    error_message = "the name is the function's, with its certificate"
  }
  assert {
    condition     = output.audit_webhook_url == "https://audit.example.com/audit-webhook/" && yamldecode(kubectl_manifest.audit_domain["ClusterDomainClaim"].yaml_body).spec.namespace == "tidemark"
    error_message = "and so is the audit webhook"
  }
}

run "a_store_that_is_there_already_is_used" {
  variables {
    valkey     = null
    redis      = { address = "a.example.com:6379,b.example.com:6379", users = { refsweep = "sweeper" } }
    key_prefix = "prod"
  }
  assert {
    condition     = length(module.valkey) == 0 && local.store == { REDIS_ADDR = "a.example.com:6379,b.example.com:6379", REDIS_KEY_PREFIX = "prod", REDIS_TLS = "true" }
    error_message = "with TLS unless told otherwise"
  }
  assert {
    condition     = local.users["refsweep"] == "sweeper" && local.users["watchcommit"] == "watchcommit"
    error_message = "with its users"
  }
}

run "another_ingress_is_let_in" {
  variables {
    ingress_namespace = "istio-system"
  }
  assert {
    condition     = strcontains(kubectl_manifest.network["functions"].yaml_body, "istio-system") && !strcontains(kubectl_manifest.network["functions"].yaml_body, "kourier-system")
    error_message = "instead of Kourier"
  }
}

run "moves_are_sent_where_they_are_wanted" {
  variables {
    moved_sink_url = "http://broker-ingress.knative-eventing.svc.cluster.local/tidemark/default"
  }
  assert {
    condition     = local.moved.K_SINK == "http://broker-ingress.knative-eventing.svc.cluster.local/tidemark/default"
    error_message = "the function posts there"
  }
}
