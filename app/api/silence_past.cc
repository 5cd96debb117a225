#include "app/api/silence_past.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/json.h"

namespace tocsin::app {
namespace {

using routing::Silence;

// A change of one silence, as the audit has it.
struct SilenceChange {
  core::WallTime at{};
  std::optional<Silence> before, after;
};
using ChangesById = std::map<std::string, std::vector<SilenceChange>>;

std::optional<Silence> silence_in(const core::Value& fields) {
  if (fields.is_null()) return std::nullopt;
  auto read = routing::read_silence(core::to_json(fields));
  return read ? std::optional(std::move(*read)) : std::nullopt;
}

ChangesById changes_of(const AuditHistory& audit) {
  ChangesById out;
  for (const AuditHistory::Entry& entry : audit.entries()) {
    const AuditEntry& change = entry.change;
    if (change.what != "silence.set" && change.what != "silence.ended") continue;
    out[change.subject].push_back({change.at, silence_in(change.before), silence_in(change.after)});
  }
  for (auto& [id, changes] : out)
    std::stable_sort(changes.begin(), changes.end(),
                     [](const auto& a, const auto& b) { return a.at < b.at; });
  return out;
}

// Whose newest version was written later. nullopt: it was not there.
std::optional<Silence> before_later_changes(const std::vector<SilenceChange>& changes,
                                            core::WallTime at) {
  const auto later = std::find_if(changes.begin(), changes.end(),
                                  [&](const SilenceChange& one) { return one.at > at; });
  if (later != changes.begin()) return std::prev(later)->after;
  return later == changes.end() ? std::nullopt : later->before;
}

}  // namespace

core::Result<KnownSilences> silences_at(ApiDesk& desk, core::WallTime at) {
  KnownSilences now;
  ChangesById changes;
  std::optional<core::WallTime> since;
  const auto seen = desk.view.read([&](const TopicView& view) {
    now = view.silences();
    changes = changes_of(desk.audit);
    since = desk.audit.complete_since();
  });
  if (!seen) return seen.error();
  if (since && at < *since)
    return core::Error{core::Code::not_found,
                       "at: changes of silences are kept here since " + core::to_rfc3339(*since)};
  KnownSilences out;
  for (const auto& [id, silence] : now) {
    const core::WallTime written = std::max(silence.created_at, silence.updated_at);
    const auto found = changes.find(id);
    // Whoever changed it may have written no audit: then the newest is told.
    const bool unaudited = found == changes.end() && silence.created_at <= at;
    if (written <= at || unaudited) {
      out.emplace(id, silence);
    } else if (found != changes.end()) {
      if (auto then = before_later_changes(found->second, at)) out.emplace(id, std::move(*then));
    }
  }
  // Those that ended so long ago that their records were taken back.
  for (const auto& [id, all] : changes) {
    if (now.contains(id)) continue;
    if (auto then = before_later_changes(all, at)) out.emplace(id, std::move(*then));
  }
  return out;
}

}  // namespace tocsin::app
