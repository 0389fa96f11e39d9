module "who" {
  source                = "../../modules/function-lambda"
  name                  = "${var.name}-who"
  description           = "Tells the last changes of an object"
  package               = "${local.packages}/who-${var.architecture}.zip"
  architecture          = var.architecture
  memory_mb             = 512
  timeout_seconds       = 30
  max_scale             = 2
  vpc                   = local.network
  secrets_extension_arn = var.secrets_extension_arn
  log_retention_days    = var.log_retention_days
  alarms                = local.alarms
  policy_statements     = [module.valkey.connect["who"]]
  secret_prefixes       = local.git_secret_prefixes

  environment = merge(local.redis["who"], local.kubernetes, local.git_secrets)
  secrets     = { READ_TOKEN = aws_secretsmanager_secret.token["read-token"].arn }

  http = var.who_address ? {
    routes      = ["GET /who"]
    rate_limit  = 5
    burst_limit = 10
  } : null
}
