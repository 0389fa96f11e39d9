data "aws_caller_identity" "current" {}

data "aws_region" "current" {}

data "aws_partition" "current" {}

data "aws_eks_cluster" "watched" {
  name = var.eks_cluster
}

locals {
  packages = coalesce(var.packages_dir, "${path.module}/../../../dist/lambda")

  # The functions reach Valkey, and some of them the API server, from inside the VPC.
  network = {
    subnet_ids         = var.subnet_ids
    security_group_ids = [module.valkey.client_security_group_id]
  }

  redis = { for f in local.functions : f => {
    REDIS_ADDR       = module.valkey.address
    REDIS_TLS        = "true"
    REDIS_USERNAME   = module.valkey.users[f]
    REDIS_IAM_CACHE  = module.valkey.cache_name
    REDIS_KEY_PREFIX = var.key_prefix
  } }

  kubernetes = {
    EKS_CLUSTER  = var.eks_cluster
    EKS_ENDPOINT = data.aws_eks_cluster.watched.endpoint
    EKS_CA       = data.aws_eks_cluster.watched.certificate_authority[0].data
  }

  git_secrets         = var.git_secrets_prefix == null ? {} : { GIT_SECRETS_PREFIX = var.git_secrets_prefix }
  git_secret_prefixes = var.git_secrets_prefix == null ? [] : [var.git_secrets_prefix]

  alarms = { topic_arns = var.alarm_topic_arns }
}

# The API server's private address is reached through the cluster's own security group.
resource "aws_vpc_security_group_ingress_rule" "api_server" {
  security_group_id            = data.aws_eks_cluster.watched.vpc_config[0].cluster_security_group_id
  referenced_security_group_id = module.valkey.client_security_group_id
  description                  = "${var.name} reads the Kubernetes API"
  ip_protocol                  = "tcp"
  from_port                    = 443
  to_port                      = 443
}

# A role is a user without any permission but those that RBAC gives its group (infra/kubernetes/eks).
resource "aws_eks_access_entry" "function" {
  for_each = {
    refsweep    = module.refsweep.identity
    watchcommit = module.watchcommit.identity
    who         = module.who.identity
  }
  cluster_name      = var.eks_cluster
  principal_arn     = each.value
  kubernetes_groups = ["tidemark:${each.key}"]
  user_name         = "tidemark:${each.key}"
  type              = "STANDARD"
}

# A schedule that was switched off or lost its right to call makes no error anywhere.
resource "aws_cloudwatch_metric_alarm" "silent" {
  for_each            = { refsweep = module.refsweep.name, watchcommit = module.watchcommit.name }
  alarm_name          = "${each.value}-silent"
  alarm_description   = "${each.value} was not called for 15 minutes"
  namespace           = "AWS/Lambda"
  metric_name         = "Invocations"
  dimensions          = { FunctionName = each.value }
  statistic           = "Sum"
  period              = 900
  evaluation_periods  = 1
  threshold           = 1
  comparison_operator = "LessThanThreshold"
  treat_missing_data  = "breaching"
  alarm_actions       = var.alarm_topic_arns
  ok_actions          = var.alarm_topic_arns
}
