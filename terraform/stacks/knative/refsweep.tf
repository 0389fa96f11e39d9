module "refsweep" {
  source      = "../../modules/function-knative"
  name        = "refsweep"
  image       = var.images["refsweep"]
  every       = var.sweep_every
  environment = merge(local.store, { REDIS_USERNAME = local.users["refsweep"] }, var.sweep_environment)
  depends_on  = [kubectl_manifest.kubernetes]
}
