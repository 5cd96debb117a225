// Asks a running job to capture more for a while, because an issue was found.
//
// Sends       one command per issue and episode to `commands`, slot <run uid>/capture/of-<integration>.
// Retries     while the topic cannot be written, or the run has not told its step, until max_age.
// Idempotent  command id and revision are those of the episode: a hook takes them once.
// Bounded     by steps, time and bytes; the hook ends it by itself. Asked again after `every`, `most`
//             times per attempt.
// Needs       a hook. Its answers are followed: the outcome of the delivery says how many ranks applied it.
// Source      our own: docs/actions/raise_capture.md.

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include "actions/contract/descriptor.h"
#include "actions/steer/steering_frame.h"
#include "core/collections.h"
#include "core/json.h"
#include "core/statistics.h"
#include "core/text.h"

namespace tocsin::actions {
namespace {

using core::Duration;

struct RaiseSettings {
  std::vector<std::string> collections{"gradients", "weights"};
  std::vector<std::string> statistics;
  bool raw = false;
  std::int64_t interval = 1;
  std::int64_t steps = 100;
  Duration time = std::chrono::minutes(10);
  config::Bytes max_bytes{256ULL << 20};
  SteeringLimits limits;
  Duration wait = std::chrono::minutes(1);
};

struct RaiseConfig final : ActionConfig {
  RaiseSettings settings;

  [[nodiscard]] core::Result<std::unique_ptr<core::Action>> build(
      const Environment& environment, const IntegrationName& name,
      const CommonConfig& common) const override;
};

/// One slot per integration: captures of several unite in the hook.
std::string raised_slot(const std::string& integration) {
  constexpr std::size_t kLongest = 100;
  std::string out = "capture/of-";
  for (const char c : integration.substr(0, kLongest)) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                       c == '_' || c == '-';
    out += plain ? c : '_';
  }
  return out;
}

/// The step that the run has reached by now, from the step and the pace that it told last.
std::int64_t step_reached(const core::CurrentRun& run, core::WallTime now) {
  constexpr double kLongestReported = 60;  // seconds
  const std::int64_t told = run.step.value_or(0);
  if (!run.step_seconds || *run.step_seconds <= 0 || now <= run.step_at) return told;
  const double since = std::chrono::duration<double>(now - run.step_at).count();
  const double passed = std::min(since, kLongestReported) / *run.step_seconds;
  return told + static_cast<std::int64_t>(std::min(passed, 1e9));
}

class RaiseCapture final : public core::Action {
 public:
  RaiseCapture(const RaiseConfig& cfg, const Environment& environment, const IntegrationName& name)
      : cfg_(cfg.settings), steering_(environment, raised_slot(name.id), cfg_.limits, cfg_.wait) {}

  [[nodiscard]] core::Result<std::string> render(
      const core::Notification& notification) const override {
    core::ValueList out;
    for (const core::NotifiedIssue& one : SteeringFrame::targets(notification)) {
      out.push_back(core::ValueMap{{"command_id", steering_.id_of(one)},
                                   {"run", to_text(one.issue.run.uid)},
                                   {"attempt", std::uint64_t{one.issue.run.attempt}},
                                   {"plan", plan()},
                                   {"steps", cfg_.steps},
                                   {"issue_key", one.issue_key}});
    }
    return core::to_json(std::move(out));
  }

  core::AttemptOutcome execute(const core::Notification& notification, std::uint32_t /*attempt*/,
                               std::chrono::milliseconds /*budget*/) override {
    return steering_.carry_out(
        notification, [this](const core::NotifiedIssue& one, const core::CurrentRun& current) {
          return compose(one, current);
        });
  }

 private:
  [[nodiscard]] core::Value plan() const {
    core::ValueMap collections;
    for (const std::string& name : cfg_.collections) {
      core::ValueMap body;
      core::ValueList statistics(cfg_.statistics.begin(), cfg_.statistics.end());
      if (!statistics.empty()) body.emplace_back("statistics", std::move(statistics));
      if (cfg_.raw) body.emplace_back("raw", true);
      collections.emplace_back(name, std::move(body));
    }
    return core::ValueMap{{"every", std::to_string(cfg_.interval) + " steps"},
                          {"collections", std::move(collections)}};
  }

  SteeringFrame::Composed compose(const core::NotifiedIssue& one,
                                  const core::CurrentRun& current) const {
    if (!current.step) {
      return held("step_unknown",
                  "run " + to_text(one.issue.run.uid) + " has not told a train step yet");
    }
    core::Command out = steering_.begin(one, current);
    core::Value wanted = plan();
    const core::WallTime ends = out.issued_at + cfg_.time;
    out.args = core::ValueMap{{"version", core::params_hash(core::to_json(wanted, true))},
                              {"plans", core::ValueList{wanted}},
                              {"until_step", step_reached(current, out.issued_at) + cfg_.steps},
                              {"until_time", core::to_rfc3339(ends)},
                              {"max_bytes", static_cast<std::int64_t>(cfg_.max_bytes.count)}};
    return out;
  }

  RaiseSettings cfg_;
  SteeringFrame steering_;
};

core::Result<std::unique_ptr<core::Action>> RaiseConfig::build(
    const Environment& environment, const IntegrationName& name,
    const CommonConfig& /*common*/) const {
  return make_command_action<RaiseCapture>(*this, environment, name);
}

config::Check<config::Bytes> captured_bytes() {
  config::Check<config::Bytes> out;
  out.ok = [](const config::Bytes& given) {
    return given.count >= 1024 && given.count <= (1ULL << 40U);
  };
  out.expected = "1KiB … 1TiB";
  return out;
}

void check_captured(config::Reader& in, const RaiseSettings& cfg) {
  if (in.describing()) return;
  if (cfg.collections.empty()) in.error("collections", "expected at least one collection");
  for (std::size_t i = 0; i < cfg.collections.size(); ++i) {
    const std::string& name = cfg.collections[i];
    if (core::find_collection(name) != nullptr) continue;
    const auto nearest = core::nearest(name, core::collection_names());
    in.error("collections[" + std::to_string(i) + "]",
             "no built-in collection is named \"" + name + "\"" +
                 (nearest.empty() ? "" : ", did you mean " + nearest + "?"));
  }
  for (std::size_t i = 0; i < cfg.statistics.size(); ++i) {
    if (const auto parsed = core::parse_statistic(cfg.statistics[i]); !parsed) {
      in.error("statistics[" + std::to_string(i) + "]", parsed.error().message);
    }
  }
}

std::shared_ptr<const ActionConfig> read_raise_capture(config::Reader& in) {
  auto cfg = std::make_shared<RaiseConfig>();
  RaiseSettings& own = cfg->settings;
  in.optional("collections", own.collections, "built-in collections to capture");
  in.optional("statistics", own.statistics, "statistics of them beside the base columns");
  in.optional("raw", own.raw, "capture the elements too, where the run allows it");
  in.optional("interval", own.interval, config::between<std::int64_t>(1, 1'000'000),
              "capture every Nth step");
  in.optional("steps", own.steps, config::between<std::int64_t>(1, 100'000),
              "train steps from now on");
  in.optional("time", own.time,
              config::between<Duration>(std::chrono::seconds(1), std::chrono::hours(24)),
              "at most so long");
  in.optional("max_bytes", own.max_bytes, captured_bytes(),
              "bytes of statistics and elements that one rank captures until it ends by itself");
  in.optional("every", own.limits.every, config::at_least(Duration{}),
              "least time between two requests to one run");
  in.optional("most", own.limits.most,
              config::between<std::uint64_t>(1, SteeringLedger::kMostAsked),
              "requests to one attempt of a run");
  in.optional("wait", own.wait,
              config::between<Duration>(std::chrono::seconds(1), std::chrono::minutes(2)),
              "how long answers of ranks are waited for");
  check_captured(in, own);
  return cfg;
}

}  // namespace

ActionDescriptor raise_capture() {
  CommonConfig defaults;
  defaults.send_resolved = false;
  defaults.max_age = std::chrono::minutes(5);  // what it would show later is something else
  return {"raise_capture",
          "Asks the run to capture more for a while.",
          {.coalesce = false,
           .every_issue = true,
           .dedup = true,
           .stateful = false,
           .reads_issues = true},
          read_raise_capture,
          defaults};
}

}  // namespace tocsin::actions
