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
  secrets_extension_arn = var.webhooks.admission_token ? var.secrets_extension_arn : null
  log_retention_days    = var.log_retention_days
  alarms                = local.alarms
  policy_statements     = [module.valkey.connect["authorcapture"]]

  environment = local.redis["authorcapture"]
  # A webhook configuration cannot carry a token. What came without one is trusted less: the first record of a command
  # stays, and an audit fact about it outranks the record.
  secrets = var.webhooks.admission_token ? { ADMISSION_TOKEN = aws_secretsmanager_secret.token["admission-token"].arn } : {}

  http = var.webhooks.admission ? {
    routes      = ["POST /validate-operator-types"]
    rate_limit  = 20
    burst_limit = 40
  } : null
}
