#include "app/api/restart_rows.h"

#include <iterator>
#include <optional>
#include <utility>
#include <variant>

#include "app/api/attempt_log.h"
#include "ingest/ingest.h"

namespace tocsin::app {
namespace {

using core::Value;

AttemptLog attempts_of(ApiDesk& desk, const std::string& run) {
  AttemptLog out;
  auto store = desk.insights.reader();
  if (!store) return out;
  for (const insights::KeptRecord& kept : (*store)->attempts_of(run)) {
    const auto decoded = ingest::decode_event(kept.view());
    if (!decoded) continue;
    if (const auto* job = std::get_if<core::JobEvent>(&decoded->event)) out.saw(*job);
  }
  return out;
}

// Ranks of one attempt may have begun in different seconds: it is the last that had begun then.
std::optional<std::int64_t> known_attempt(const AttemptLog& log, std::int64_t attempt) {
  const auto next = log.attempts().upper_bound(attempt);
  if (next == log.attempts().begin()) return std::nullopt;
  return std::prev(next)->first;
}

Value attempt_number_or_null(const AttemptLog& log, std::optional<std::int64_t> attempt) {
  return attempt ? Value(log.number_of(*attempt)) : Value();
}

}  // namespace

core::ValueList restart_rows(ApiDesk& desk, const std::string& run,
                             const std::vector<insights::Restart>& restarts) {
  core::ValueList out;
  if (restarts.empty()) return out;
  const AttemptLog log = attempts_of(desk, run);
  const auto& attempts = log.attempts();
  for (const insights::Restart& one : restarts) {
    const auto known = known_attempt(log, one.attempt);
    const auto mine = known ? attempts.find(*known) : attempts.end();
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
        {"number", attempt_number_or_null(log, known)},
        {"before", attempt_number_or_null(log, known_attempt(log, one.before))},
        {"world_size", sized ? Value(mine->second.world_size) : Value()},
        {"reason", ended ? Value(before->outcome) : Value()},
        {"exit_code",
         ended && before->exit_code ? Value(std::int64_t{*before->exit_code}) : Value()}});
  }
  return out;
}

}  // namespace tocsin::app
