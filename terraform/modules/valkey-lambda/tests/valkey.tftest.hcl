mock_provider "aws" {
  source = "../../testing/aws"
}

variables {
  name       = "tidemark"
  vpc_id     = "vpc-1"
  subnet_ids = ["subnet-1", "subnet-2"]
  users = {
    auditingest = "on ~gitops-reverser:author:v1:audit:* resetchannels -@all +get +evalsha"
    watchcommit = "on ~gitops-reverser:* -@all +get +set"
  }
}

run "each_function_has_its_own_user_without_a_password" {
  assert {
    condition     = output.users == { auditingest = "tidemark-auditingest", watchcommit = "tidemark-watchcommit" }
    error_message = "a user a function"
  }
  assert {
    condition     = alltrue([for u in aws_elasticache_user.function : u.authentication_mode[0].type == "iam" && u.user_id == u.user_name && u.passwords == null])
    error_message = "IAM is how they prove who they are"
  }
  assert {
    condition     = aws_elasticache_user.function["auditingest"].access_string == var.users.auditingest
    error_message = "the rules arrive as they are written"
  }
  assert {
    condition     = toset(aws_elasticache_user_group.functions.user_ids) == toset(["tidemark-auditingest", "tidemark-watchcommit"])
    error_message = "no user but the functions'"
  }
  assert {
    condition     = output.connect["auditingest"].actions == ["elasticache:Connect"] && length(output.connect["auditingest"].resources) == 2
    error_message = "the statement names the cache and the user"
  }
}

run "the_cache_is_bounded_and_reached_by_its_clients_only" {
  assert {
    condition     = aws_elasticache_serverless_cache.cache.cache_usage_limits[0].data_storage[0].maximum == 1 && aws_elasticache_serverless_cache.cache.cache_usage_limits[0].ecpu_per_second[0].maximum == 5000
    error_message = "data and processing are bounded"
  }
  assert {
    condition     = aws_vpc_security_group_ingress_rule.cache.referenced_security_group_id == aws_security_group.clients.id && aws_vpc_security_group_ingress_rule.cache.to_port == 6380
    error_message = "its two ports, from the clients"
  }
  assert {
    condition     = output.address == "mock.serverless.euw1.cache.amazonaws.com:6379,mock.serverless.euw1.cache.amazonaws.com:6380"
    error_message = "two addresses, so that the functions speak the Cluster protocol"
  }
  assert {
    condition     = aws_cloudwatch_metric_alarm.cache["nearly-full"].threshold == 800000000
    error_message = "the alarm comes before the eviction"
  }
}
