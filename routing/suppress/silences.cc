#include "routing/suppress/silences.h"

#include <algorithm>
#include <cstdint>
#include <utility>

#include "core/fields/json_in.h"
#include "core/fields/out.h"
#include "routing/suppress/silence_json.h"
#include "routing/suppress/silence_rules.h"
#include "routing/tables/own_issues.h"

namespace tocsin::routing {

using core::How;
using core::Of;
using core::Status;
using core::WallTime;

namespace {

/// What the router adds of its own is small.
constexpr std::size_t kMaxSilenceState = kMaxSilenceBytes + 1024;

constexpr std::string_view kReminder = "reminder";

Reach reach_of(const Silence& silence) {
  if (silence.actions.empty()) return Reach::all;
  return silence.actions == "notify" ? Reach::notify : Reach::stop;
}

struct StoredSilence {
  Silence silence;
  WallTime changed_at{};
  WallTime matched_at{};
  bool matching = false;
  std::uint64_t asked_version = 0;
};
template <typename A>
void fields(A& io, Of<A, StoredSilence>& stored) {
  io.field("silence", stored.silence);
  io.field("changed_at", core::Nanoseconds{stored.changed_at}, "", How::required);
  io.field("matched_at", core::Nanoseconds{stored.matched_at});
  io.field("matching", stored.matching, "", How::omit_if_empty);
  io.field("asked_version", stored.asked_version, "", How::omit_if_empty);
}

}  // namespace

std::string encode(const SilenceState& state) {
  return core::write_json(StoredSilence{state.silence, state.changed_at, state.matched_at,
                                        state.matching, state.asked_version});
}

Status decode(std::string_view value, SilenceState& state) {
  StoredSilence stored;
  if (const Status read = core::read_json(value, kMaxSilenceState, stored); !read) {
    return core::Error{core::Code::data_loss, read.error().message};
  }
  auto scope = SilenceScope::of(stored.silence);
  if (!scope) return core::Error{core::Code::data_loss, scope.error().message};
  state = {std::move(stored.silence), std::move(*scope), stored.changed_at,
           stored.matched_at,         stored.matching,   stored.asked_version};
  return core::ok();
}

Status Silences::apply(std::string_view id, std::optional<std::string_view> value, WallTime now) {
  const std::string key(id);
  const SilenceState* known = table_.find(key);
  if (!value) {
    if (known == nullptr) return core::ok();
    taken_back_ = now;
    table_.erase(key);
    index();
    return core::ok();
  }
  auto read = read_silence(*value);
  if (!read) return read.error();
  if (read->id != id) return core::invalid_argument("its id is not that of its key");
  if (known == nullptr && table_.size() >= kMaxSilences) {
    return core::Error{core::Code::resource_exhausted,
                       "more than " + std::to_string(kMaxSilences) + " silences"};
  }
  auto next = follow(known == nullptr ? nullptr : &known->silence, *read);
  if (!next) {
    put_back(known->silence, *read, now);
    return next.error();
  }
  auto scope = SilenceScope::of(*next);
  if (!scope) return scope.error();
  SilenceState& kept = table_.make(key);
  kept.scope = std::move(*scope);
  kept.silence = std::move(*next);
  kept.changed_at = now;
  table_.touch(key);
  index();
  return core::ok();
}

/// A topic that keeps the last record of a key would show a change that was refused, and not the one
/// that stands. As a version of its own everybody takes it.
void Silences::put_back(const Silence& standing, const Silence& refused, WallTime now) {
  Silence again = standing;
  again.version = refused.version;
  again.updated_at = refused.updated_at;
  if (again == refused) return;  // it says the same
  again.version = std::max(standing.version, refused.version) + 1;
  again.updated_at = now;
  put_back_.push_back({"silence/" + again.id, silence_json(again)});
}

Status Silences::restore(std::string_view id, std::string_view value) {
  const Status read = table_.restore(id, value);
  index();
  return read;
}

void Silences::forget(WallTime now) {
  const auto old = [&](const auto& one) {
    return one.second->silence.ends_at + kSilenceKept < now;
  };
  if (std::none_of(order_.begin(), order_.end(), old)) return;
  for (const auto& one : order_) {
    if (old(one)) table_.erase(std::string(one.first));
  }
  index();
}

void Silences::index() {
  order_ = table_.in_order();
  sets_.reset();
  some_remind_ = std::any_of(order_.begin(), order_.end(), [](const auto& one) {
    return one.second->silence.announce_on_unmute == kReminder;
  });
}

void Silences::match(const core::Labels& labels, std::vector<std::size_t>& out) const {
  out.clear();
  if (order_.empty()) return;
  if (!sets_) {
    std::vector<Matchers> sets;
    owner_.clear();
    for (std::size_t i = 0; i < order_.size(); ++i) {
      for (const Matchers& set : order_[i].second->scope.sets()) {
        sets.push_back(set);
        owner_.push_back(i);
      }
    }
    sets_.emplace(std::move(sets));
  }
  sets_->match(labels, matching_sets_);
  for (const std::size_t set : matching_sets_) {
    if (out.empty() || out.back() != owner_[set]) out.push_back(owner_[set]);
  }
}

void Silences::reasons(const core::Issue& issue, WallTime tick,
                       std::vector<Suppression>& out) const {
  if (is_silence_notice(issue.rule)) return;  // it tells of silences
  match(issue.labels, matching_);
  for (const std::size_t i : matching_) {
    if (!order_[i].second->scope.in_force(tick)) continue;
    out.push_back({"silence:" + std::string(order_[i].first), reach_of(order_[i].second->silence),
                   Cause::silence});
  }
}

void Silences::count(Stats& stats, WallTime now) const {
  stats.silences = stats.silences_pending = stats.silences_expired = stats.silences_unmatched = 0;
  for (const auto& one : order_) {
    const SilenceState& state = *one.second;
    if (state.silence.ends_at <= now) {
      ++stats.silences_expired;
    } else if (state.silence.starts_at > now) {
      ++stats.silences_pending;
    } else if (state.scope.in_force(now)) {
      ++stats.silences;
      if (!state.matching) ++stats.silences_unmatched;
    }
  }
}

bool Silences::may_differ(const AnyMember& /*any_member*/, WallTime since, WallTime now) const {
  const auto within = [&](WallTime at) { return since < at && at <= now; };
  if (within(taken_back_)) return true;
  return std::any_of(order_.begin(), order_.end(), [&](const auto& one) {
    const SilenceState& state = *one.second;
    return within(state.changed_at) || state.scope.next_change(since, now).has_value();
  });
}

bool Silences::reminds(const core::Issue& issue, WallTime since, WallTime now) const {
  if (!some_remind_) return false;
  match(issue.labels, matching_);
  return std::any_of(matching_.begin(), matching_.end(), [&](std::size_t i) {
    const SilenceState& state = *order_[i].second;
    if (state.silence.announce_on_unmute != kReminder || state.scope.in_force(now)) return false;
    // Its end may have been moved since: then it was in force until the router heard of that.
    const bool ended_early = since < state.changed_at && state.changed_at <= now &&
                             state.silence.ends_at <= now && state.silence.starts_at < now;
    return ended_early || state.scope.in_force(since);
  });
}

}  // namespace tocsin::routing
