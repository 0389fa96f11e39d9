output "address" {
  description = "host:port twice, for REDIS_ADDR: several addresses make the functions speak the Cluster protocol, which a serverless cache wants. It speaks TLS only: REDIS_TLS=true."
  value       = join(",", [for port in [6379, 6380] : "${aws_elasticache_serverless_cache.cache.endpoint[0].address}:${port}"])
}

output "cache_name" {
  description = "Name of the cache, which is signed into each IAM token."
  value       = aws_elasticache_serverless_cache.cache.name
}

output "users" {
  description = "Each function's user name, for REDIS_USERNAME."
  value       = { for k, u in aws_elasticache_user.function : k => u.user_name }
}

output "connect" {
  description = "Each function's IAM statement that lets it connect as its own user: an element of policy_statements."
  value = { for k, u in aws_elasticache_user.function : k => {
    sid       = "ConnectToValkey"
    actions   = ["elasticache:Connect"]
    resources = [aws_elasticache_serverless_cache.cache.arn, u.arn]
  } }
}

output "client_security_group_id" {
  description = "Security group of those who may talk to the cache."
  value       = aws_security_group.clients.id
}
