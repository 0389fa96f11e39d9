locals {
  secrets = merge({
    audit-tokens = "AUDIT_TOKENS of auditingest: route=token, comma-separated"
    read-token   = "READ_TOKEN of refsweep and who"
  }, var.webhooks.admission_token ? { admission-token = "ADMISSION_TOKEN of authorcapture" } : {})
}

# The secrets are made here and filled by a person: no value passes through Terraform, so none is in the state.
resource "aws_secretsmanager_secret" "token" {
  for_each                = local.secrets
  name                    = "${var.name}/${each.key}"
  description             = each.value
  recovery_window_in_days = 7
}
