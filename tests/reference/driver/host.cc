#include "tests/reference/driver/host.h"

#include <stdexcept>

namespace tocsin::reference {
namespace {

core::Value told(const core::Issue& issue) {
  core::ValueMap labels;
  for (const auto& [name, value] : issue.labels.entries()) labels.emplace_back(name, value);
  core::ValueMap out{
      {"rule", issue.rule},
      {"kind", issue.kind},
      {"status", std::string(core::to_string(issue.status))},
      {"resolution", std::string(core::to_string(issue.resolution))},
      {"severity", std::string(core::to_string(issue.severity))},
      {"labels", std::move(labels)},
      {"id", issue.event_id},
      {"version", issue.rule_version},
      {"time", core::nanoseconds(issue.time)},
      {"first", issue.evidence.window.first},
      {"last", issue.evidence.window.last},
      {"occurrences", issue.evidence.occurrences},
      {"observed", issue.evidence.observed.value},
      {"summary", issue.summary},
  };
  // Of an end, where it ended: what was found stays with the issue.
  const bool over = issue.ending.has_value();
  const auto step = over && issue.ending->step ? issue.ending->step : issue.step;
  const auto global =
      over && issue.ending->global_step ? issue.ending->global_step : issue.global_step;
  if (step) out.emplace_back("step", *step);
  if (global) out.emplace_back("global", *global);
  if (issue.mode) out.emplace_back("mode", std::string(core::to_string(*issue.mode)));
  return out;
}

core::Value told(const core::RuleStatusEvent& event) {
  core::ValueMap counts;
  for (const auto& [outcome, count] : event.evaluations) counts.emplace_back(outcome, count);
  core::ValueList missing;
  for (const std::string& input : event.missing) missing.emplace_back(input);
  return core::ValueMap{{"rule", event.rule},
                        {"run", core::to_text(event.run.uid)},
                        {"status", std::string(core::to_string(event.status))},
                        {"reason", event.reason},
                        {"summary", event.summary},
                        {"missing", std::move(missing)},
                        {"evaluations", std::move(counts)}};
}

}  // namespace

Host::Host(rules::RulesConfig rules, rules::EngineOptions options)
    : rules_(std::move(rules)), options_(std::move(options)) {
  start();
}

void Host::start() {
  auto engine = rules::Engine::create(rules_, options_);
  if (!engine) throw std::runtime_error(engine.error().message);
  engine_ = std::move(*engine);
}

void Host::gather() {
  rules::Output output = engine_->take(kPartition);
  for (const rules::Event& event : output.events) {
    if (const auto* issue = std::get_if<core::Issue>(&event)) issues.push_back(told(*issue));
    if (const auto* status = std::get_if<core::RuleStatusEvent>(&event)) {
      statuses.push_back(told(*status));
    }
  }
  for (rules::Event& event : output.events) {
    if (auto* job = std::get_if<core::JobEvent>(&event)) runs_[job->run.uid] = std::move(*job);
  }
  for (rules::StateRecord& record : output.log) {
    if (record.value) {
      state_[record.key] = std::move(*record.value);
    } else {
      state_.erase(record.key);
    }
  }
}

void Host::settle(core::WallTime now) {
  for (const core::RunUid& run : engine_->further_shards(kPartition)) {
    const auto known = runs_.find(run);
    if (known != runs_.end()) engine_->settle(kPartition, known->second, now, true);
  }
}

void Host::restart(std::size_t budget, std::int64_t next, core::WallTime now) {
  const auto keep = [&](rules::StateRecord record) {
    if (record.value) {
      state_[record.key] = std::move(*record.value);
    } else {
      state_.erase(record.key);
    }
  };
  gather();
  while (engine_->snapshot(kPartition, budget, keep)) gather();
  start();
  for (const auto& [key, value] : state_) {
    if (const auto read = engine_->restore(kPartition, key, value); !read) {
      throw std::runtime_error("restore: " + read.error().message);
    }
  }
  const core::Position committed{{kStream, kPartition}, next};
  const auto restored = engine_->finish_restore(kPartition, {&committed, 1});
  if (!restored) throw std::runtime_error("restore: " + restored.error().message);
  if (restored->positions) {
    for (const core::Position& position : *restored->positions) {
      if (position.next != next) throw std::runtime_error("a snapshot stands elsewhere");
    }
  }
  engine_->go_live(kPartition, now);
}

}  // namespace tocsin::reference
