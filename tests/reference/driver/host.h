// One engine with its configuration and what it has written of its state, so that a case can end the
// process and go on with another one.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "core/value.h"
#include "rules/rules.h"

namespace tocsin::reference {

/// Errors, of which none belongs to a case, are thrown as std::runtime_error.
class Host {
 public:
  static constexpr std::int32_t kPartition = 3;
  static constexpr const char* kStream = "telemetry";

  Host(rules::RulesConfig rules, rules::EngineOptions options);

  [[nodiscard]] rules::Engine& engine() { return *engine_; }
  /// Takes what was decided: events to the answer, state to the topic.
  void gather();
  /// What was said of the runs goes to their further shards, which have nothing more to say.
  void settle(core::WallTime now);
  /// A snapshot in pieces of `budget` bytes, then a new engine that restores it. `next`: offset of
  /// the record to come. The snapshot stands at that offset, so nothing is replayed.
  void restart(std::size_t budget, std::int64_t next, core::WallTime now);

  core::ValueList issues;
  core::ValueList statuses;

 private:
  void start();

  rules::RulesConfig rules_;
  rules::EngineOptions options_;
  std::unique_ptr<rules::Engine> engine_;
  std::map<std::string, std::string> state_;
  std::map<core::RunUid, core::JobEvent> runs_;  // the topic `registry`
};

}  // namespace tocsin::reference
