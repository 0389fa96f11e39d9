module "auditingest" {
  source                = "../../modules/function-lambda"
  name                  = "${var.name}-auditingest"
  description           = "Files who made each change, from audit events"
  package               = "${local.packages}/auditingest-${var.architecture}.zip"
  architecture          = var.architecture
  memory_mb             = 256
  timeout_seconds       = 15
  max_scale             = 10
  vpc                   = local.network
  secrets_extension_arn = var.secrets_extension_arn
  log_retention_days    = var.log_retention_days
  alarms                = local.alarms
  policy_statements     = [module.valkey.connect["auditingest"]]

  environment = merge(local.redis["auditingest"], {
    LAMBDA_LOGS_PATH = "/audit-webhook/${var.audit_route}"
  })
  secrets = { AUDIT_TOKENS = aws_secretsmanager_secret.token["audit-tokens"].arn }

  http = var.webhooks.audit ? {
    routes      = ["POST /audit-webhook/{route}", "GET /audit-webhook/{route}/self-test"]
    rate_limit  = 50
    burst_limit = 100
  } : null
}

# EKS has no audit webhook; its audit log goes to CloudWatch Logs. Reads and early stages are left out before
# they cost anything.
resource "aws_cloudwatch_log_subscription_filter" "audit" {
  name            = "${var.name}-auditingest"
  log_group_name  = "/aws/eks/${var.eks_cluster}/cluster"
  destination_arn = module.auditingest.arn
  filter_pattern  = "{ ($.kind = \"Event\") && ($.stage = \"ResponseComplete\") && (($.verb = \"create\") || ($.verb = \"update\") || ($.verb = \"patch\") || ($.verb = \"delete\") || ($.verb = \"deletecollection\")) }"
  depends_on      = [aws_lambda_permission.audit]
}

resource "aws_lambda_permission" "audit" {
  statement_id   = "EksAuditLog"
  action         = "lambda:InvokeFunction"
  function_name  = module.auditingest.name
  principal      = "logs.amazonaws.com"
  source_account = data.aws_caller_identity.current.account_id
  source_arn     = "arn:${data.aws_partition.current.partition}:logs:${data.aws_region.current.region}:${data.aws_caller_identity.current.account_id}:log-group:/aws/eks/${var.eks_cluster}/cluster:*"
}
