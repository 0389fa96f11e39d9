locals {
  api = var.http != null && try(var.http.kind, "") == "api"
  url = var.http != null && try(var.http.kind, "") == "url"
}

resource "aws_apigatewayv2_api" "function" {
  count         = local.api ? 1 : 0
  name          = var.name
  description   = var.description
  protocol_type = "HTTP"
  tags          = var.tags
}

resource "aws_apigatewayv2_integration" "function" {
  count                  = local.api ? 1 : 0
  api_id                 = aws_apigatewayv2_api.function[0].id
  integration_type       = "AWS_PROXY"
  integration_uri        = aws_lambda_function.function.invoke_arn
  payload_format_version = "2.0"
  # An HTTP API answers after 30 s at the latest, whatever the function does.
  timeout_milliseconds = min(var.timeout_seconds, 30) * 1000
}

resource "aws_apigatewayv2_route" "function" {
  for_each  = toset(local.api ? var.http.routes : [])
  api_id    = aws_apigatewayv2_api.function[0].id
  route_key = each.value
  target    = "integrations/${aws_apigatewayv2_integration.function[0].id}"
}

resource "aws_cloudwatch_log_group" "access" {
  count             = local.api ? 1 : 0
  name              = "/aws/apigateway/${var.name}"
  retention_in_days = var.log_retention_days
  tags              = var.tags
}

resource "aws_apigatewayv2_stage" "function" {
  count       = local.api ? 1 : 0
  api_id      = aws_apigatewayv2_api.function[0].id
  name        = "$default"
  auto_deploy = true
  tags        = var.tags

  default_route_settings {
    throttling_rate_limit  = var.http.rate_limit
    throttling_burst_limit = var.http.burst_limit
  }

  # No header is logged, so no token is.
  access_log_settings {
    destination_arn = aws_cloudwatch_log_group.access[0].arn
    format = jsonencode({
      time    = "$context.requestTimeEpoch"
      request = "$context.requestId"
      source  = "$context.identity.sourceIp"
      route   = "$context.routeKey"
      status  = "$context.status"
      bytes   = "$context.responseLength"
      error   = "$context.integrationErrorMessage"
    })
  }
}

resource "aws_lambda_permission" "api" {
  count         = local.api ? 1 : 0
  statement_id  = "HttpApi"
  action        = "lambda:InvokeFunction"
  function_name = aws_lambda_function.function.function_name
  principal     = "apigateway.amazonaws.com"
  source_arn    = "${aws_apigatewayv2_api.function[0].execution_arn}/*/*"
}

resource "aws_lambda_function_url" "function" {
  count              = local.url ? 1 : 0
  function_name      = aws_lambda_function.function.function_name
  authorization_type = "NONE"
  invoke_mode        = "BUFFERED"
}

# A function URL needs both permissions; the second holds for calls through the URL only.
resource "aws_lambda_permission" "url" {
  count                  = local.url ? 1 : 0
  statement_id           = "FunctionUrl"
  action                 = "lambda:InvokeFunctionUrl"
  function_name          = aws_lambda_function.function.function_name
  principal              = "*"
  function_url_auth_type = "NONE"
}

resource "aws_lambda_permission" "url_invoke" {
  count                    = local.url ? 1 : 0
  statement_id             = "FunctionUrlInvoke"
  action                   = "lambda:InvokeFunction"
  function_name            = aws_lambda_function.function.function_name
  principal                = "*"
  invoked_via_function_url = true
}
