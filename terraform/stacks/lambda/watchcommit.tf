module "watchcommit" {
  source                = "../../modules/function-lambda"
  name                  = "${var.name}-watchcommit"
  description           = "Writes what changed into git, with its author"
  package               = "${local.packages}/watchcommit-${var.architecture}.zip"
  architecture          = var.architecture
  memory_mb             = 1024
  timeout_seconds       = local.watch_timeout
  max_scale             = 4
  vpc                   = local.network
  secrets_extension_arn = var.secrets_extension_arn
  log_retention_days    = var.log_retention_days
  alarms                = local.alarms
  policy_statements     = [module.valkey.connect["watchcommit"]]

  environment = merge(local.redis["watchcommit"], local.kubernetes, {
    WATCH_WINDOW      = "${var.watch_window_seconds}s"
    ATTRIBUTION_GRACE = "${var.attribution_grace_seconds}s"
  })

  # Events wake, cursors decide: a call that failed is made good by the next tick.
  async = { max_retries = 0, max_age_seconds = 120 }

  queue = { sender_arns = var.wake_rule_arns }
}

locals {
  # Listen, wait for the authors of what came last, commit and push.
  watch_timeout = var.watch_window_seconds + var.attribution_grace_seconds + 60
}

module "watchcommit_schedule" {
  source                = "../../modules/schedule"
  name                  = "${var.name}-watchcommit"
  description           = "Commits what changed since the cursors"
  every                 = var.watch_every
  function_arn          = module.watchcommit.arn
  dead_letter_queue_arn = module.watchcommit.dead_letter_queue_arn
}
