# Every variable that changes what is made, for make knative-check.
images = {
  auditingest   = "registry.example.com/tidemark/auditingest@sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
  authorcapture = "registry.example.com/tidemark/authorcapture:v1"
  refsweep      = "registry.example.com/tidemark/refsweep:v1"
  watchcommit   = "registry.example.com/tidemark/watchcommit:v1"
  who           = "registry.example.com/tidemark/who:v1"
}
valkey = {
  image         = "registry.example.com/valkey:8.1-alpine"
  max_memory_mb = 512
  storage       = { size = "4Gi", class = "fast" }
  tls_secret    = "valkey-tls"
}
key_prefix                = "prod"
git_secrets               = ["git-one", "git-two"]
watch_every               = "*/2 * * * *"
watch_window_seconds      = 110
attribution_grace_seconds = 60
wake_on                   = [{ api_version = "networking.k8s.io/v1", kind = "Ingress", resource = "ingresses" }]
sweep_every               = "*/5 * * * *"
sweep_environment         = { SWEEP_SELECTOR = "team=platform" }
webhooks = {
  audit_domain     = "audit.example.com"
  admission_domain = "admission.example.com"
  admission_token  = true
  ca_bundle        = "LS0tLS1CRUdJTiBDRVJUSUZJQ0FURS0tLS0tCi0tLS0tRU5EIENFUlRJRklDQVRFLS0tLS0K"
}
ingress_namespace = "istio-system"
moved_sink_url    = "http://broker-ingress.knative-eventing.svc.cluster.local/tidemark/default"
