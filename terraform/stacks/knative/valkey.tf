module "valkey" {
  source        = "../../modules/valkey-knative"
  count         = var.valkey == null ? 0 : 1
  image         = var.valkey.image
  key_prefix    = var.key_prefix
  max_memory_mb = var.valkey.max_memory_mb
  storage       = var.valkey.storage
  tls_secret    = var.valkey.tls_secret
  depends_on    = [kubectl_manifest.foundation]
}
