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
  secret_prefixes       = local.git_secret_prefixes

  environment = merge(local.redis["watchcommit"], local.kubernetes, local.git_secrets, {
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

# How long the longest waiting change has waited, out of the line that each drain logs.
resource "aws_cloudwatch_log_metric_filter" "lag" {
  name           = "${var.name}-watchcommit-lag"
  log_group_name = module.watchcommit.log_group
  pattern        = "{ $.msg = \"drained\" }"

  metric_transformation {
    namespace = "Tidemark"
    name      = "${var.name}-watchcommit-lag"
    value     = "$.lagSeconds"
    unit      = "Seconds"
  }
}

resource "aws_cloudwatch_metric_alarm" "lag" {
  alarm_name          = "${var.name}-watchcommit-lag"
  alarm_description   = "A change has waited for more than ${var.lag_alarm_seconds} s and is not in git; kubectl get gittargets says which target"
  namespace           = "Tidemark"
  metric_name         = "${var.name}-watchcommit-lag"
  statistic           = "Maximum"
  period              = 300
  evaluation_periods  = 1
  threshold           = var.lag_alarm_seconds
  comparison_operator = "GreaterThanThreshold"
  treat_missing_data  = "notBreaching"
  alarm_actions       = var.alarm_topic_arns
  ok_actions          = var.alarm_topic_arns
}
