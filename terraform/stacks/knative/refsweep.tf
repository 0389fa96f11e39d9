module "refsweep" {
  source      = "../../modules/function-knative"
  name        = "refsweep"
  image       = var.images["refsweep"]
  every       = var.sweep_every
  environment = merge(local.store, { REDIS_USERNAME = local.users["refsweep"] }, local.moved, var.sweep_environment)
  depends_on  = [kubectl_manifest.kubernetes]
}

locals {
  # A SinkBinding would do the same by changing the Service, which every plan would then want to change back.
  moved = var.moved_sink_url == null ? {} : { K_SINK = var.moved_sink_url }
}
