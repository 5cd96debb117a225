// Door of actions: carrying notifications out. Routing decides whether and when; here is how.
//
//   answer_target.h   what a button or a link in a message is about
//   click_reply.h     answers to clicks in Slack
//   descriptor.h      action types and what they need from outside
//   receivers.h       the `receivers` section
//   delivery_lanes.h  which attempt is made when: order, retries, limits, breaker, records
//   delivery_marks.h  what records of deliveries say beside their outcome
//   endpoint_order.h  what people ask of one integration, and how it stands
//   caller.h          port: carrying attempts out; delivery_pool.h does it with threads
//   firing_issues.h   which issues fire, for stops that wait
//   issue_metrics.h   state series for /metrics/issues
//   alarm_spans.h     the way of an issue as spans; span_export.h: to an OpenTelemetry collector
//   stop_approvals.h  stops that wait for a person's word
//   stop_by_hand.h    the stop that a person asks for
//   platform_agent.h  stopping a run by the platform that runs it: what the leader does
//   platforms.h       the `platforms` section; platform_caller.h: port for calls off the thread
//   profile_ledger.h  which runs were asked for profiles, across restarts
//   stop_ledger.h     which stops were asked for: max_stops, once per attempt, across restarts
//   stop_muster.h     has every rank heard of the step at which all leave?
//   own_issues.h      the issues that this room makes itself
//   stop_failed.h     the issue by which people hear of a stop that did not come about
//   steering_ledger.h which runs were asked for captures and adjustments, and what they answered
//   stop_ladder.h     stopping a run of this machine: cooperative, then signals, fenced
//   training_scalars.h newest scalars of runs, for publish_metric
//   trial.h           a test message by one integration, with what was asked and answered
#pragma once

#include "actions/contract/answer_target.h"
#include "actions/contract/common_config.h"
#include "actions/contract/delivery_marks.h"
#include "actions/contract/descriptor.h"
#include "actions/contract/endpoint_order.h"
#include "actions/contract/own_issues.h"
#include "actions/contract/receivers.h"
#include "actions/delivery/caller.h"
#include "actions/delivery/delivery_lanes.h"
#include "actions/delivery/delivery_pool.h"
#include "actions/message/issue_metrics.h"
#include "actions/message/training_scalars.h"
#include "actions/platform/platform_agent.h"
#include "actions/platform/platform_caller.h"
#include "actions/platform/platforms.h"
#include "actions/profile/profile_ledger.h"
#include "actions/spans/alarm_spans.h"
#include "actions/spans/span_export.h"
#include "actions/steer/steering_ledger.h"
#include "actions/stop/firing_issues.h"
#include "actions/stop/local_process.h"
#include "actions/stop/stop_approvals.h"
#include "actions/stop/stop_by_hand.h"
#include "actions/stop/stop_failed.h"
#include "actions/stop/stop_ladder.h"
#include "actions/stop/stop_ledger.h"
#include "actions/stop/stop_muster.h"
#include "actions/transport/click_reply.h"
#include "actions/trial/trial.h"
