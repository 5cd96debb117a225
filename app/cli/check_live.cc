#include "app/cli/check_live.h"

#include <algorithm>
#include <chrono>
#include <memory>
#include <utility>

#include "actions/trial/probe.h"
#include "app/cli/receiver_choice.h"
#include "app/process/exit_code.h"
#include "core/log.h"
#include "core/system_clock.h"
#include "core/telemetry.h"
#include "core/text_table.h"
#include "core/topic_settings.h"
#include "core/visible_text.h"
#include "ingest/ingest.h"

namespace tocsin::app {
namespace {

using namespace std::chrono_literals;

constexpr auto kBrokerWait = 5s;

/// Topics that are missing, or lose what they must keep.
std::string topics_trouble(ingest::Transport& transport) {
  const auto states = transport.topic_states();
  if (!states) return states.error().message;
  std::string missing;
  std::size_t absent = 0;
  for (const ingest::TopicState& state : *states) {
    if (state.partitions || ++absent > 3) continue;
    missing += (missing.empty() ? "" : ", ") + state.wanted.full_name;
  }
  if (absent > 3) missing += " and " + std::to_string(absent - 3) + " more";
  if (absent > 0) return "topics are missing: " + missing + "; `tocsin topics apply` creates them";
  auto* settings = dynamic_cast<core::TopicSettings*>(&transport);
  if (settings == nullptr) return {};  // a journal
  const auto comparisons = settings->compare();
  if (!comparisons) return comparisons.error().message;
  for (const core::TopicComparison& one : *comparisons) {
    for (const core::TopicDifference& difference : one.differences) {
      if (difference.grade != core::TopicDifference::Grade::danger) continue;
      return "topic " + one.topic + ": " + difference.key + " is " + difference.found +
             ", wanted " + difference.wanted + "; `tocsin topics plan` shows all";
    }
  }
  return {};
}

LiveAnswer ask_broker(ingest::Transport& transport) {
  LiveAnswer out;
  out.who = transport.describe();
  out.broker = true;
  if (const auto status = transport.ping(kBrokerWait); !status) {
    out.problem = status.error().message;
    return out;
  }
  out.answer = transport.is_kafka() ? "all topics are as wanted" : "can be used";
  out.problem = topics_trouble(transport);
  out.broker = out.problem.empty();
  return out;
}

void ask_receivers(const AppConfig& config, ingest::Transport* transport,
                   std::vector<LiveAnswer>& out) {
  core::SystemClock clock;
  core::NullLog log;
  core::NullTelemetry telemetry;
  actions::Environment environment = trial_environment(config);
  environment.clock = &clock;
  environment.log = &log;
  environment.telemetry = &telemetry;
  environment.try_record = [transport](const core::OutRecord& record) -> core::Status {
    if (transport == nullptr) return core::Error{core::Code::unavailable, "no broker answers"};
    if (const auto allowed = transport->allow_topics({record.topic.substr(1)}); !allowed) {
      return allowed;
    }
    return transport->try_record(record);
  };
  for (const auto& integration : config.receivers.integrations) {
    const actions::Probe probe = actions::probe_integration(integration, environment);
    if (!probe.skipped.empty()) {
      out.push_back({probe.integration, "", "", probe.skipped, true, false});
    }
    for (const actions::ProbedPlace& one : probe.places) {
      const auto took = std::chrono::duration_cast<std::chrono::milliseconds>(one.took);
      std::string answer = one.answer;
      if (one.problem.empty() && took.count() > 0) {
        answer += (answer.empty() ? "" : ", ") + std::to_string(took.count()) + " ms";
      }
      out.push_back({probe.integration, one.place, one.problem, std::move(answer), false, false});
    }
  }
}

}  // namespace

std::vector<LiveAnswer> ask_live(const AppConfig& config) {
  std::vector<LiveAnswer> out;
  core::NullLog log;
  core::NullTelemetry telemetry;
  auto transport = ingest::Transport::open(config.transport, config.topics, log, telemetry);
  if (transport) {
    out.push_back(ask_broker(**transport));
  } else {
    out.push_back({"transport", "", transport.error().message, "", false, true});
  }
  ask_receivers(config, transport ? transport->get() : nullptr, out);
  return out;
}

std::string live_text(const std::vector<LiveAnswer>& answers) {
  std::string out = "asked now; nothing was sent\n";
  for (const LiveAnswer& one : answers) {
    std::string lead = "  " + core::visible(one.who);
    if (!one.place.empty()) lead += "  " + core::visible(one.place);
    std::string words = one.skipped ? "not asked: " + one.answer : "answers";
    if (!one.skipped && !one.answer.empty()) words += ": " + one.answer;
    if (!one.problem.empty()) words = "FAILS: " + core::visible(one.problem);
    out += core::wrapped(lead + "  ", words, 100, 4);
  }
  return out;
}

core::Value live_value(const std::vector<LiveAnswer>& answers) {
  core::ValueList out;
  for (const LiveAnswer& one : answers) {
    out.push_back(core::ValueMap{{"who", one.who},
                                 {"place", one.place},
                                 {"state", one.skipped           ? "skipped"
                                           : one.problem.empty() ? "answers"
                                                                 : "fails"},
                                 {"detail", one.problem.empty() ? one.answer : one.problem}});
  }
  return out;
}

int live_code(const std::vector<LiveAnswer>& answers) {
  const auto fails = [&](bool broker) {
    return std::any_of(answers.begin(), answers.end(), [&](const LiveAnswer& one) {
      return !one.problem.empty() && one.broker == broker;
    });
  };
  if (fails(true)) return kUnreachable;
  return fails(false) ? kFailed : kOk;
}

}  // namespace tocsin::app
