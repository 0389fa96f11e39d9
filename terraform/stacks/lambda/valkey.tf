locals {
  functions = ["auditingest", "authorcapture", "refsweep", "watchcommit", "who"]

  # The rules are written once, in infra/valkey/acl; a line that begins with # is a comment.
  acl = { for f in local.functions : f => replace(
    join(" ", [for l in split("\n", file("${path.module}/../../../infra/valkey/acl/${f}.acl")) : trimspace(l) if !startswith(l, "#") && trimspace(l) != ""]),
    "{prefix}", var.key_prefix
  ) }
}

module "valkey" {
  source           = "../../modules/valkey-lambda"
  name             = var.name
  vpc_id           = var.vpc_id
  subnet_ids       = var.subnet_ids
  users            = local.acl
  alarm_topic_arns = var.alarm_topic_arns
}
