#include "actions/trial/trial.h"

#include <algorithm>
#include <utility>

#include "actions/contract/message_fault.h"
#include "actions/trial/recording_ports.h"
#include "actions/trial/test_message.h"

namespace tocsin::actions {
namespace {

using core::NotificationKind;
using core::OutcomeClass;

core::AttemptOutcome not_built(const core::Error& error) {
  core::AttemptOutcome out;
  out.outcome = OutcomeClass::configuration;
  out.code = "configuration";
  out.detail = error.message;
  return out;
}

constexpr std::uint32_t kMostAttempts = 6;  // as many as an action may hold back, and one

// What an action hands over to be written with its delivery.
Exchange published(const core::OutRecord& record, bool sent) {
  const ExchangeMask mask({});
  Exchange out;
  const std::string topic = record.topic.substr(record.topic.starts_with('/') ? 1 : 0);
  out.request = mask.line("publish " + topic + (record.key.empty() ? "" : ", key " + record.key));
  out.request_headers = mask.headers(record.headers);
  out.request_body = mask.lines(record.value.value_or(""));
  if (sent) out.answer = "written";
  return out;
}

TrialStep attempt(core::Action& action, core::Notification notification, Recording& recording,
                  const ConfiguredIntegration& integration, const TrialOptions& options,
                  core::Clock& clock) {
  TrialStep out;
  out.kind = notification.kind;
  const core::Duration begin = clock.monotonic();
  if (auto rendered = action.render(notification)) {
    notification.rendered = std::move(*rendered);
    const auto budget =
        std::chrono::duration_cast<std::chrono::milliseconds>(integration.common.timeout);
    out.outcome = action.execute(notification, 1, budget);
    for (std::uint32_t next = 2; next <= kMostAttempts && out.outcome.held; ++next) {
      if (options.dry_run || !options.pause || !out.outcome.retry_after) break;
      options.pause(*out.outcome.retry_after);
      out.outcome = action.execute(notification, next, budget);
    }
  } else {
    out.outcome = not_built(rendered.error());
  }
  out.took = clock.monotonic() - begin;
  out.exchanges = std::exchange(recording.exchanges, {});
  for (const core::OutRecord& record : out.outcome.records) {
    out.exchanges.push_back(published(record, !options.dry_run));
  }
  return out;
}

bool arrived(const TrialStep& step) { return step.outcome.outcome == OutcomeClass::delivered; }

void note_differences(const ConfiguredIntegration& integration, const TrialOptions& options,
                      Trial& out) {
  if (!integration.common.enabled) {
    out.notes.emplace_back("enabled is false: the router sends nothing");
  }
  if (integration.common.shadow) out.notes.emplace_back("shadow is true: the router sends nothing");
  if (options.drill && !integration.common.send_resolved) {
    out.notes.emplace_back(
        "send_resolved is false: neither the router nor this drill sends a close");
  }
  const bool open = !options.dry_run && !out.steps.empty() && arrived(out.steps.front()) &&
                    (out.steps.size() == 1 || !arrived(out.steps.back()));
  if (open && integration.traits.stateful) {
    out.notes.emplace_back(
        "the far side may keep this test open; resolve it there. --drill closes what it opens");
  }
}

// The open, and in a drill the close if the open arrived: a router closes nothing that nobody has.
void deliver_steps(core::Action& action, const ConfiguredIntegration& integration,
                   const Environment& environment, const TrialOptions& options,
                   Recording& recording, std::vector<TrialStep>& out) {
  core::Clock& clock = *environment.clock;
  const core::Notification open =
      options.message
          ? options.message(integration, clock.now())
          : test_open(integration, {options.severity, options.person, environment.cluster},
                      clock.now());
  out.push_back(attempt(action, open, recording, integration, options, clock));
  if (!options.drill || !integration.common.send_resolved) return;
  if (!options.dry_run && !arrived(out.back())) return;
  core::Notification close = test_close(open, clock.now());
  close.handles = far_side_names(out.back().outcome.handles);
  out.push_back(attempt(action, std::move(close), recording, integration, options, clock));
}

}  // namespace

bool Trial::passed() const {
  if (!skipped.empty()) return false;
  return std::all_of(steps.begin(), steps.end(), [&](const TrialStep& step) {
    return dry_run ? !step.exchanges.empty() : arrived(step);
  });
}

bool Trial::worth_repeating() const {
  if (!skipped.empty() || dry_run || steps.empty() || passed()) return false;
  const OutcomeClass last = steps.back().outcome.outcome;
  return last == OutcomeClass::transient || last == OutcomeClass::throttled ||
         last == OutcomeClass::unknown;
}

Trial try_integration(const ConfiguredIntegration& integration, Environment environment,
                      const TrialOptions& options) {
  Trial out{
      integration.common.id, integration.receiver, integration.type, options.dry_run, {}, {}, {}};
  if (integration.traits.reads_issues && !integration.config->takes_test_messages()) {
    out.skipped = "acts on runs and issues, and takes no message";
    return out;
  }
  Recording recording{!options.dry_run, {}};
  RecordingHttp http(environment.http, recording);
  RecordingMailer mailer(environment.mailer, recording);
  RecordingMqtt mqtt(environment.mqtt, recording);
  RecordingDatagrams datagrams(environment.datagrams, recording);
  environment.http = &http;
  environment.mailer = &mailer;
  environment.mqtt = &mqtt;
  environment.datagrams = &datagrams;
  if (const auto action = integration.build(environment)) {
    deliver_steps(**action, integration, environment, options, recording, out.steps);
  } else {
    out.steps.push_back({NotificationKind::open, not_built(action.error()), {}, {}});
  }
  note_differences(integration, options, out);
  return out;
}

core::Value to_value(const Trial& trial) {
  core::ValueList notes;
  for (const std::string& note : trial.notes) notes.emplace_back(note);
  core::ValueList steps;
  for (const TrialStep& step : trial.steps) {
    core::ValueList requests;
    for (const Exchange& one : step.exchanges) requests.push_back(to_value(one));
    core::ValueMap map{{"kind", std::string(to_string(step.kind))}};
    if (!trial.dry_run) {
      map.emplace_back("outcome", std::string(to_string(step.outcome.outcome)));
      map.emplace_back("code", step.outcome.code);
      map.emplace_back("detail", step.outcome.detail);
      map.emplace_back("seconds", std::chrono::duration<double>(step.took).count());
    }
    map.emplace_back("requests", std::move(requests));
    steps.emplace_back(std::move(map));
  }
  core::ValueMap out{{"integration", trial.integration},
                     {"receiver", trial.receiver},
                     {"type", trial.type},
                     {"passed", trial.passed()}};
  if (!trial.skipped.empty()) out.emplace_back("skipped", trial.skipped);
  out.emplace_back("notes", std::move(notes));
  out.emplace_back("steps", std::move(steps));
  return out;
}

}  // namespace tocsin::actions
