# Each run gives one bad value; the plan must name the variable.
mock_provider "aws" {
  source = "../../testing/aws"
}

variables {
  name                  = "tidemark-refsweep"
  every                 = "rate(2 minutes)"
  function_arn          = "arn:aws:lambda:eu-west-1:123456789012:function:tidemark-refsweep"
  dead_letter_queue_arn = "arn:aws:sqs:eu-west-1:123456789012:tidemark-refsweep-dead"
}

run "odd_names_are_refused" {
  command = plan
  variables {
    name = "Sweep"
  }
  expect_failures = [var.name]
}

run "long_descriptions_are_refused" {
  command = plan
  variables {
    description = join("", [for i in range(513) : "x"])
  }
  expect_failures = [var.description]
}

run "functions_without_arn_are_refused" {
  command = plan
  variables {
    function_arn = "refsweep"
  }
  expect_failures = [var.function_arn]
}

run "seconds_are_refused" {
  command = plan
  variables {
    every = "rate(30 seconds)"
  }
  expect_failures = [var.every]
}

run "wrong_plurals_are_refused" {
  command = plan
  variables {
    every = "rate(1 minutes)"
  }
  expect_failures = [var.every]
}

run "five_field_crons_are_refused" {
  command = plan
  variables {
    every = "cron(*/2 * * * *)"
  }
  expect_failures = [var.every]
}

run "odd_time_zones_are_refused" {
  command = plan
  variables {
    timezone = "UTC+1 hour"
  }
  expect_failures = [var.timezone]
}

run "inputs_that_are_no_json_are_refused" {
  command = plan
  variables {
    input = "tick"
  }
  expect_failures = [var.input]
}

run "too_many_retries_are_refused" {
  command = plan
  variables {
    max_retries = 186
  }
  expect_failures = [var.max_retries]
}

run "too_young_an_age_are_refused" {
  command = plan
  variables {
    max_age_seconds = 30
  }
  expect_failures = [var.max_age_seconds]
}

run "queues_without_arn_are_refused" {
  command = plan
  variables {
    dead_letter_queue_arn = "tidemark-dead"
  }
  expect_failures = [var.dead_letter_queue_arn]
}

run "boundaries_that_are_no_policy_are_refused" {
  command = plan
  variables {
    permissions_boundary_arn = "arn:aws:iam::123456789012:role/x"
  }
  expect_failures = [var.permissions_boundary_arn]
}
