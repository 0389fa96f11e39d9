resource "aws_security_group" "clients" {
  name        = "${var.name}-clients"
  description = "May talk to the cache ${var.name}"
  vpc_id      = var.vpc_id
  tags        = var.tags
}

resource "aws_vpc_security_group_egress_rule" "clients" {
  security_group_id = aws_security_group.clients.id
  description       = "Valkey, the git servers, the Kubernetes API and AWS"
  ip_protocol       = "-1"
  cidr_ipv4         = "0.0.0.0/0"
  tags              = var.tags
}

resource "aws_security_group" "cache" {
  name        = "${var.name}-cache"
  description = "The cache ${var.name}"
  vpc_id      = var.vpc_id
  tags        = var.tags
}

resource "aws_vpc_security_group_ingress_rule" "cache" {
  security_group_id            = aws_security_group.cache.id
  referenced_security_group_id = aws_security_group.clients.id
  description                  = "Valkey from the functions: 6379, and 6380 for reads that may be a little old"
  ip_protocol                  = "tcp"
  from_port                    = 6379
  to_port                      = 6380
  tags                         = var.tags
}

# With IAM authentication a user's id and name are the same, and there is no password anywhere.
resource "aws_elasticache_user" "function" {
  for_each      = var.users
  user_id       = "${var.name}-${each.key}"
  user_name     = "${var.name}-${each.key}"
  engine        = "valkey"
  access_string = each.value
  tags          = var.tags

  authentication_mode {
    type = "iam"
  }
}

# A group of engine valkey needs no user "default", so nobody gets in without a name.
resource "aws_elasticache_user_group" "functions" {
  user_group_id = var.name
  engine        = "valkey"
  user_ids      = [for u in aws_elasticache_user.function : u.user_id]
  tags          = var.tags
}

resource "aws_elasticache_serverless_cache" "cache" {
  name                 = var.name
  description          = "Facts, cursors and observations of Tidemark"
  engine               = "valkey"
  major_engine_version = var.engine_version
  subnet_ids           = var.subnet_ids
  security_group_ids   = [aws_security_group.cache.id]
  user_group_id        = aws_elasticache_user_group.functions.user_group_id
  kms_key_id           = var.kms_key_arn
  # Everything in it is found again by a replay: a snapshot would only bring back old cursors.
  snapshot_retention_limit = 0
  tags                     = var.tags

  cache_usage_limits {
    data_storage {
      maximum = var.max_storage_gb
      unit    = "GB"
    }
    ecpu_per_second {
      maximum = var.max_ecpu_per_second
    }
  }
}

locals {
  alarms = {
    # Above the limit the cache evicts keys with a TTL: facts first of all, and authors are lost.
    nearly-full = { metric = "BytesUsedForCache", statistic = "Maximum", threshold = var.max_storage_gb * 1000000000 * 0.8, description = "${var.name} holds more than 80 % of max_storage_gb: beyond it facts are evicted" }
    throttled   = { metric = "ThrottledCmds", statistic = "Sum", threshold = 1, description = "${var.name} refused commands: max_ecpu_per_second is too low" }
  }
}

resource "aws_cloudwatch_metric_alarm" "cache" {
  for_each            = local.alarms
  alarm_name          = "${var.name}-${each.key}"
  alarm_description   = each.value.description
  namespace           = "AWS/ElastiCache"
  metric_name         = each.value.metric
  dimensions          = { clusterId = aws_elasticache_serverless_cache.cache.name }
  statistic           = each.value.statistic
  period              = 300
  evaluation_periods  = 1
  threshold           = each.value.threshold
  comparison_operator = "GreaterThanOrEqualToThreshold"
  treat_missing_data  = "notBreaching"
  alarm_actions       = var.alarm_topic_arns
  ok_actions          = var.alarm_topic_arns
  tags                = var.tags
}
