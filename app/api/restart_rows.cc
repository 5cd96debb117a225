#include "app/api/restart_rows.h"

#include <map>
#include <optional>
#include <utility>
#include <variant>

#include "ingest/ingest.h"

namespace tocsin::app {
namespace {

using core::Value;

// An attempt that no launcher has numbered has the second of its start for a number.
constexpr std::int64_t kLeastSecond = 1'000'000'000;

struct AttemptFacts {
  std::int64_t number = 0;
  std::int64_t world_size = 0;  // 0: nobody has said
  std::string outcome;
  std::optional<int> exit_code;
};
using AttemptsOfRun = std::map<std::int64_t, AttemptFacts>;

AttemptsOfRun attempts_of(ApiDesk& desk, const std::string& run) {
  AttemptsOfRun out;
  auto store = desk.insights.reader();
  if (!store) return out;
  for (const insights::KeptRecord& kept : (*store)->attempts_of(run)) {
    const auto decoded = ingest::decode_event(kept.view());
    const auto* job = decoded ? std::get_if<core::JobEvent>(&decoded->event) : nullptr;
    if (job == nullptr) continue;
    AttemptFacts& into = out[std::int64_t{job->run.attempt}];
    if (job->world_size > 0) into.world_size = job->world_size;
    if (job->phase != core::JobPhase::ended) continue;
    into.outcome = job->outcome;
    into.exit_code = job->exit_code;
  }
  std::int64_t count = 0;
  for (auto& [attempt, facts] : out) facts.number = attempt < kLeastSecond ? attempt : ++count;
  return out;
}

}  // namespace

core::ValueList restart_rows(ApiDesk& desk, const std::string& run,
                             const std::vector<insights::Restart>& restarts) {
  core::ValueList out;
  if (restarts.empty()) return out;
  const AttemptsOfRun attempts = attempts_of(desk, run);
  for (const insights::Restart& one : restarts) {
    // Ranks of one attempt may have begun in different seconds: it is the last that had begun then.
    auto mine = attempts.upper_bound(one.attempt);
    const bool known = mine != attempts.begin();
    if (known) --mine;
    const AttemptFacts* before =
        known && mine != attempts.begin() ? &std::prev(mine)->second : nullptr;
    const bool sized = known && mine->second.world_size > 0;
    const bool ended = before != nullptr && !before->outcome.empty();
    out.push_back(core::ValueMap{
        {"mode", std::string(core::to_string(one.mode))},
        {"step", one.step},
        {"attempt", one.attempt},
        {"workers", one.workers},
        {"again", one.again},
        {"number", known ? Value(mine->second.number) : Value()},
        {"world_size", sized ? Value(mine->second.world_size) : Value()},
        {"reason", ended ? Value(before->outcome) : Value()},
        {"exit_code", ended && before->exit_code ? Value(*before->exit_code) : Value()}});
  }
  return out;
}

}  // namespace tocsin::app
