#include "app/view/silence_records.h"

#include <algorithm>
#include <utility>

#include "core/identity.h"
#include "core/json.h"
#include "core/topics.h"

namespace tocsin::app {
namespace {

core::OutRecord record_of(const std::string& id, std::optional<std::string> value) {
  core::OutRecord out{core::topic::kRouterControl, "silence/" + id, std::move(value)};
  out.partition = 0;
  return out;
}

}  // namespace

std::vector<core::OutRecord> silence_records(const routing::Silence& silence,
                                             const std::map<std::string, routing::Silence>& known,
                                             core::WallTime now) {
  std::vector<core::OutRecord> out{record_of(silence.id, silence_json(silence))};
  for (const auto& [id, old] : known) {
    if (old.ends_at + routing::kSilenceKept < now) out.push_back(record_of(id, std::nullopt));
  }
  return out;
}

core::Value silence_fields(const routing::Silence& silence) {
  const std::string json = silence_json(silence);
  auto value = core::parse_json(json, json.size());
  return value ? std::move(*value) : core::Value();
}

routing::Silence ended_silence(routing::Silence silence, core::WallTime now) {
  silence.ends_at = now;
  silence.starts_at = std::min(silence.starts_at, now - std::chrono::nanoseconds(1));
  return silence;
}

std::string silence_id(const routing::Silence& silence) {
  return core::make_id("sil_", {silence.matchers, silence.created_by,
                                std::to_string(core::nanoseconds(silence.created_at))});
}

std::string silence_state(const routing::Silence& silence, core::WallTime now) {
  if (silence.ends_at <= now) return "expired";
  return silence.starts_at > now ? "pending" : "active";
}

}  // namespace tocsin::app
