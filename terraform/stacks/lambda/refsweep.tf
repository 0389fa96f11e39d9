module "refsweep" {
  source                = "../../modules/function-lambda"
  name                  = "${var.name}-refsweep"
  description           = "Notices which git repositories moved"
  package               = "${local.packages}/refsweep-${var.architecture}.zip"
  architecture          = var.architecture
  memory_mb             = 512
  timeout_seconds       = 110
  max_scale             = 2
  vpc                   = local.network
  secrets_extension_arn = var.secrets_extension_arn
  log_retention_days    = var.log_retention_days
  alarms                = local.alarms
  policy_statements     = [module.valkey.connect["refsweep"]]
  secret_prefixes       = local.git_secret_prefixes

  environment = merge(local.redis["refsweep"], local.kubernetes, local.git_secrets, var.sweep_environment)
  secrets     = { READ_TOKEN = aws_secretsmanager_secret.token["read-token"].arn }

  # A sweep that failed is made good by the next one.
  async = {
    max_retries     = 0
    max_age_seconds = 120
    on_success      = { arn = aws_cloudwatch_event_bus.moved.arn, kind = "events" }
  }

  http = var.observations_address ? {
    routes      = ["GET /observations"]
    rate_limit  = 10
    burst_limit = 20
  } : null
}

module "refsweep_schedule" {
  source                = "../../modules/schedule"
  name                  = "${var.name}-refsweep"
  description           = "Lists the refs of all repositories"
  every                 = var.sweep_every
  function_arn          = module.refsweep.arn
  dead_letter_queue_arn = module.refsweep.dead_letter_queue_arn
}

# What moved: the function's answer, as the event "Lambda Function Invocation Result - Success".
resource "aws_cloudwatch_event_bus" "moved" {
  name = "${var.name}-moved"
}
