module "who" {
  source      = "../../modules/function-knative"
  name        = "who"
  image       = var.images["who"]
  environment = merge(local.store, { REDIS_USERNAME = local.users["who"] })
  depends_on  = [kubectl_manifest.kubernetes]
}
