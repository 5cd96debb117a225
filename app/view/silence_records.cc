#include "app/view/silence_records.h"

#include <algorithm>
#include <utility>

#include "core/identity.h"
#include "core/json.h"
#include "core/topics.h"

namespace tocsin::app {

using core::WallTime;
using routing::Silence;

namespace {

core::OutRecord record_of(const std::string& id, std::optional<std::string> value) {
  core::OutRecord out{core::topic::kRouterControl, "silence/" + id, std::move(value)};
  out.partition = 0;
  return out;
}

}  // namespace

std::vector<core::OutRecord> silence_records(std::span<const Silence> silences,
                                             const std::map<std::string, Silence>& known,
                                             WallTime now) {
  std::vector<core::OutRecord> out;
  // What takes another one's place comes before its end: no moment lies between them.
  for (auto one = silences.rbegin(); one != silences.rend(); ++one) {
    out.push_back(record_of(one->id, silence_json(*one)));
  }
  for (const auto& [id, old] : known) {
    if (old.ends_at + routing::kSilenceKept < now) out.push_back(record_of(id, std::nullopt));
  }
  return out;
}

core::Value silence_fields(const Silence& silence) {
  const std::string json = silence_json(silence);
  auto value = core::parse_json(json, json.size());
  return value ? std::move(*value) : core::Value();
}

Silence ended_silence(Silence silence, WallTime now) {
  silence.ends_at = now;
  silence.starts_at = std::min(silence.starts_at, now - std::chrono::nanoseconds(1));
  silence.updated_at = now;
  ++silence.version;
  return silence;
}

Silence new_silence(Silence asked, WallTime now) {
  asked.created_at = asked.updated_at = now;
  asked.version = 1;
  asked.ended_by.clear();
  asked.id = silence_id(asked);
  return asked;
}

std::vector<Silence> changed_silence(const Silence& old, Silence asked, WallTime now) {
  if (routing::same_silence(old, asked, now)) {
    asked.id = old.id;
    asked.created_at = old.created_at;
    asked.replaces = old.replaces;
    asked.updated_at = now;
    asked.version = old.version + 1;
    return {std::move(asked)};
  }
  std::vector<Silence> out;
  if (old.ends_at > now) out.push_back(ended_silence(old, now));
  asked.replaces = old.id;
  out.push_back(new_silence(std::move(asked), now));
  return out;
}

std::string silence_id(const Silence& silence) {
  return core::make_id("sil_", {matchers_text(silence), silence.created_by,
                                std::to_string(core::nanoseconds(silence.created_at))});
}

std::string silence_state(const Silence& silence, WallTime now) {
  if (silence.ends_at <= now) return "expired";
  return silence.starts_at > now ? "pending" : "active";
}

}  // namespace tocsin::app
