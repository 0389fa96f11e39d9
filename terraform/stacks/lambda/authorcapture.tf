module "authorcapture" {
  source                = "../../modules/function-lambda"
  name                  = "${var.name}-authorcapture"
  description           = "Files who asked for a command object, at its admission"
  package               = "${local.packages}/authorcapture-${var.architecture}.zip"
  architecture          = var.architecture
  memory_mb             = 256
  timeout_seconds       = 5
  max_scale             = 5
  vpc                   = local.network
  secrets_extension_arn = var.secrets_extension_arn
  log_retention_days    = var.log_retention_days
  alarms                = local.alarms
  policy_statements     = [module.valkey.connect["authorcapture"]]

  environment = local.redis["authorcapture"]
  secrets     = { ADMISSION_TOKEN = aws_secretsmanager_secret.token["admission-token"].arn }

  http = var.webhooks.admission ? {
    routes      = ["POST /validate-operator-types"]
    rate_limit  = 20
    burst_limit = 40
  } : null
}
