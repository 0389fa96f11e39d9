# What the mocked AWS provider answers where the configuration needs a well-formed value.
mock_data "aws_partition" {
  defaults = { partition = "aws" }
}

mock_data "aws_region" {
  defaults = { region = "eu-west-1" }
}

mock_data "aws_caller_identity" {
  defaults = { account_id = "123456789012" }
}

mock_resource "aws_iam_role" {
  defaults = { arn = "arn:aws:iam::123456789012:role/mock" }
}

mock_resource "aws_lambda_function" {
  defaults = {
    arn        = "arn:aws:lambda:eu-west-1:123456789012:function:mock"
    invoke_arn = "arn:aws:apigateway:eu-west-1:lambda:path/2015-03-31/functions/arn:aws:lambda:eu-west-1:123456789012:function:mock/invocations"
  }
}

mock_resource "aws_lambda_function_url" {
  defaults = { function_url = "https://mock.lambda-url.eu-west-1.on.aws/" }
}

mock_resource "aws_sqs_queue" {
  defaults = {
    arn = "arn:aws:sqs:eu-west-1:123456789012:mock"
    id  = "https://sqs.eu-west-1.amazonaws.com/123456789012/mock"
    url = "https://sqs.eu-west-1.amazonaws.com/123456789012/mock"
  }
}

mock_resource "aws_cloudwatch_log_group" {
  defaults = { arn = "arn:aws:logs:eu-west-1:123456789012:log-group:mock" }
}

mock_resource "aws_apigatewayv2_api" {
  defaults = {
    api_endpoint  = "https://mock.execute-api.eu-west-1.amazonaws.com"
    execution_arn = "arn:aws:execute-api:eu-west-1:123456789012:mock"
  }
}

mock_resource "aws_cloudwatch_event_bus" {
  defaults = { arn = "arn:aws:events:eu-west-1:123456789012:event-bus/mock" }
}

mock_resource "aws_secretsmanager_secret" {
  defaults = { arn = "arn:aws:secretsmanager:eu-west-1:123456789012:secret:mock-AbCdEf" }
}

mock_resource "aws_elasticache_serverless_cache" {
  defaults = {
    arn      = "arn:aws:elasticache:eu-west-1:123456789012:serverlesscache:mock"
    endpoint = [{ address = "mock.serverless.euw1.cache.amazonaws.com", port = 6379 }]
  }
}

mock_resource "aws_elasticache_user" {
  defaults = { arn = "arn:aws:elasticache:eu-west-1:123456789012:user:mock" }
}

mock_data "aws_eks_cluster" {
  defaults = {
    endpoint              = "https://0123456789ABCDEF.gr7.eu-west-1.eks.amazonaws.com"
    certificate_authority = [{ data = "LS0tLS1CRUdJTg==" }]
    vpc_config            = [{ cluster_security_group_id = "sg-cluster" }]
  }
}
