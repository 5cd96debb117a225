#include "routing/suppress/silence.h"

#include <algorithm>
#include <utility>

#include "core/fields/json_in.h"
#include "core/fields/out.h"
#include "routing/suppress/silence_json.h"
#include "routing/suppress/silence_rules.h"

namespace tocsin::routing {

using core::Status;
using core::WallTime;

std::vector<std::string> matcher_sets(const Silence& silence) {
  if (silence.matcher_sets.empty()) return {silence.matchers};
  return silence.matcher_sets;
}

std::string matchers_text(const Silence& silence) {
  std::string out;
  for (const std::string& set : matcher_sets(silence)) out += (out.empty() ? "" : " or ") + set;
  return out;
}

std::string silence_json(const Silence& silence) { return core::write_json(silence); }

core::Result<Silence> read_silence(std::string_view json) {
  Silence out;
  if (const Status read = core::read_json(json, kMaxSilenceBytes, out); !read) return read.error();
  if (const Status good = check(out); !good) return good.error();
  return out;
}

bool in_force(const Silence& silence, WallTime at) {
  if (at < silence.starts_at || at >= silence.ends_at) return false;
  if (!silence.recurrence) return true;
  const auto calendar = Calendar::compile(silence.recurrence->windows);
  return calendar && calendar->holds(at);
}

core::Result<SilenceScope> SilenceScope::of(const Silence& silence) {
  SilenceScope out;
  for (const std::string& set : matcher_sets(silence)) {
    auto matchers = Matchers::parse(set);
    if (!matchers) return matchers.error();
    out.sets_.push_back(std::move(*matchers));
  }
  if (silence.recurrence) {
    auto calendar = Calendar::compile(silence.recurrence->windows);
    if (!calendar) return core::Error(calendar.error()).in("recurrence");
    out.recurrence_ = std::move(*calendar);
  }
  out.starts_at_ = silence.starts_at;
  out.ends_at_ = silence.ends_at;
  return out;
}

bool SilenceScope::matches(const core::Labels& labels) const {
  return std::any_of(sets_.begin(), sets_.end(),
                     [&](const Matchers& set) { return set.matches(labels); });
}

bool SilenceScope::in_force(WallTime at) const {
  return starts_at_ <= at && at < ends_at_ && (!recurrence_ || recurrence_->holds(at));
}

std::optional<WallTime> SilenceScope::next_change(WallTime since, WallTime until) const {
  const bool now = in_force(since);
  std::optional<WallTime> out;
  const auto offer = [&](WallTime at) {
    if (since < at && at <= until && in_force(at) != now) out = std::min(out.value_or(at), at);
  };
  offer(starts_at_);
  offer(ends_at_);
  if (recurrence_ && since < ends_at_) {
    // Before its begin nothing of it counts.
    WallTime at = std::max(since, starts_at_);
    const WallTime limit = std::min(until, ends_at_);
    while (const auto change = recurrence_->next_change(at, limit)) {
      offer(*change);
      if (out && *out <= *change) break;
      at = *change;
    }
  }
  return out;
}

}  // namespace tocsin::routing
