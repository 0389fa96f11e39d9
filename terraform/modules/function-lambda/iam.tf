locals {
  destination_actions = {
    sqs    = "sqs:SendMessage"
    sns    = "sns:Publish"
    events = "events:PutEvents"
    lambda = "lambda:InvokeFunction"
  }

  secret_name_arns = [for p in var.secret_prefixes : "arn:${data.aws_partition.current.partition}:secretsmanager:${data.aws_region.current.region}:${data.aws_caller_identity.current.account_id}:secret:${p}*"]

  network_actions = [
    "ec2:AssignPrivateIpAddresses",
    "ec2:CreateNetworkInterface",
    "ec2:DeleteNetworkInterface",
    "ec2:DescribeNetworkInterfaces",
    "ec2:DescribeSubnets",
    "ec2:UnassignPrivateIpAddresses",
  ]

  statements = concat(
    [
      {
        Sid      = "WriteLog"
        Effect   = "Allow"
        Action   = ["logs:CreateLogStream", "logs:PutLogEvents"]
        Resource = ["${aws_cloudwatch_log_group.function.arn}:*"]
      },
      {
        Sid      = "SendDeadLetters"
        Effect   = "Allow"
        Action   = ["sqs:SendMessage"]
        Resource = [aws_sqs_queue.dead.arn]
      },
    ],
    length(var.secrets) + length(var.secret_prefixes) == 0 ? [] : [{
      Sid      = "ReadSecrets"
      Effect   = "Allow"
      Action   = ["secretsmanager:GetSecretValue"]
      Resource = concat(distinct(values(var.secrets)), local.secret_name_arns)
    }],
    var.secrets_kms_key_arn == null ? [] : [{
      Sid      = "DecryptSecrets"
      Effect   = "Allow"
      Action   = ["kms:Decrypt"]
      Resource = [var.secrets_kms_key_arn]
    }],
    var.queue == null ? [] : [{
      Sid      = "ReceiveWakes"
      Effect   = "Allow"
      Action   = ["sqs:ReceiveMessage", "sqs:DeleteMessage", "sqs:GetQueueAttributes"]
      Resource = [aws_sqs_queue.wake[0].arn]
    }],
    var.async.on_success == null ? [] : [{
      Sid      = "SendResults"
      Effect   = "Allow"
      Action   = [local.destination_actions[var.async.on_success.kind]]
      Resource = [var.async.on_success.arn]
    }],
    [for s in var.policy_statements : { Sid = s.sid, Effect = "Allow", Action = s.actions, Resource = s.resources }],
  )

  # Lambda itself makes the network interfaces, with the function's role, and those actions know no
  # resource. The code in the function is denied them.
  network_statements = [for s in [
    {
      Sid      = "AttachToVpc"
      Effect   = "Allow"
      Action   = local.network_actions
      Resource = ["*"]
    },
    {
      Sid       = "CodeHasNoNetworkInterfaces"
      Effect    = "Deny"
      Action    = local.network_actions
      Resource  = ["*"]
      Condition = { ArnLike = { "lambda:SourceFunctionArn" = ["arn:${data.aws_partition.current.partition}:lambda:*:*:function:${var.name}"] } }
    },
  ] : s if var.vpc != null]
}

data "aws_partition" "current" {}

data "aws_region" "current" {}

data "aws_caller_identity" "current" {}

resource "aws_iam_role" "function" {
  name                 = "${var.name}-lambda"
  description          = "Role of the function ${var.name}"
  permissions_boundary = var.permissions_boundary_arn
  tags                 = var.tags
  assume_role_policy = jsonencode({
    Version = "2012-10-17"
    Statement = [{
      Effect    = "Allow"
      Action    = "sts:AssumeRole"
      Principal = { Service = "lambda.amazonaws.com" }
    }]
  })
}

resource "aws_iam_role_policy" "function" {
  name = "function"
  role = aws_iam_role.function.id
  policy = jsonencode({
    Version   = "2012-10-17"
    Statement = concat([for s in local.statements : s], [for s in local.network_statements : s])
  })
}
