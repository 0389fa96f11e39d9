mock_provider "aws" {
  source = "../../testing/aws"
}

variables {
  name                  = "tidemark-refsweep"
  every                 = "rate(2 minutes)"
  function_arn          = "arn:aws:lambda:eu-west-1:123456789012:function:tidemark-refsweep"
  dead_letter_queue_arn = "arn:aws:sqs:eu-west-1:123456789012:tidemark-refsweep-dead"
}

run "a_tick_calls_one_function_and_is_kept_if_it_is_lost" {
  assert {
    condition     = aws_scheduler_schedule.schedule.target[0].arn == var.function_arn && aws_scheduler_schedule.schedule.target[0].dead_letter_config[0].arn == var.dead_letter_queue_arn
    error_message = "the function is called and lost ticks are kept"
  }
  assert {
    condition     = [for s in jsondecode(aws_iam_role_policy.schedule.policy).Statement : s.Resource] == [[var.function_arn], [var.dead_letter_queue_arn]]
    error_message = "the role reaches the function and the queue only"
  }
  assert {
    condition     = jsondecode(aws_iam_role.schedule.assume_role_policy).Statement[0].Condition.StringEquals["aws:SourceAccount"] == "123456789012"
    error_message = "no other account borrows the role"
  }
  assert {
    condition     = jsondecode(aws_scheduler_schedule.schedule.target[0].input)["detail-type"] == "tick"
    error_message = "the input is a tick"
  }
  assert {
    condition     = aws_scheduler_schedule.schedule.state == "ENABLED"
    error_message = "it runs"
  }
}

run "a_stopped_schedule_stays" {
  variables {
    enabled  = false
    every    = "cron(0/2 6-20 ? * MON-FRI *)"
    timezone = "Europe/Berlin"
  }
  assert {
    condition     = aws_scheduler_schedule.schedule.state == "DISABLED" && aws_scheduler_schedule.schedule.schedule_expression_timezone == "Europe/Berlin"
    error_message = "it is kept and does not run"
  }
}
