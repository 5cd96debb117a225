#include "app/api/attempt_log.h"

#include <algorithm>
#include <iterator>

namespace tocsin::app {
namespace {

using core::Value;

// An attempt that no launcher has numbered has the second of its start for a number.
constexpr std::int64_t kLeastSecond = 1'000'000'000;

Value moment_or_null(const std::optional<core::WallTime>& at) {
  return at ? Value(core::to_rfc3339(*at)) : Value();
}

}  // namespace

void AttemptLog::saw(const core::JobEvent& job) {
  AttemptFacts& into = attempts_[std::int64_t{job.run.attempt}];
  if (job.world_size > 0) into.world_size = job.world_size;
  if (job.phase == core::JobPhase::started) {
    const core::WallTime at = job.started_at.value_or(job.time);
    into.started = into.started ? std::min(*into.started, at) : at;
  } else if (job.phase == core::JobPhase::ended) {
    into.ended = job.ended_at.value_or(job.time);
    into.outcome = job.outcome;
    into.exit_code = job.exit_code;
  }
  if (!into.started && job.started_at) into.started = job.started_at;
}

std::int64_t AttemptLog::number_of(std::int64_t attempt) const {
  const auto found = attempts_.find(attempt);
  if (found == attempts_.end()) return 0;
  if (attempt < kLeastSecond) return attempt;
  return 1 + std::distance(attempts_.lower_bound(kLeastSecond), found);
}

core::ValueList AttemptLog::rows() const {
  core::ValueList out;
  for (const auto& [attempt, facts] : attempts_) {
    out.push_back(core::ValueMap{
        {"attempt", attempt},
        {"number", number_of(attempt)},
        {"started_at", moment_or_null(facts.started)},
        {"ended_at", moment_or_null(facts.ended)},
        {"world_size", facts.world_size > 0 ? Value(facts.world_size) : Value()},
        {"outcome", facts.outcome.empty() ? Value() : Value(facts.outcome)},
        {"exit_code", facts.exit_code ? Value(std::int64_t{*facts.exit_code}) : Value()}});
  }
  return out;
}

}  // namespace tocsin::app
