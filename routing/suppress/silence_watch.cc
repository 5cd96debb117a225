#include "routing/suppress/silence_watch.h"

#include <algorithm>
#include <chrono>
#include <string>
#include <utility>

#include "routing/tables/own_issues.h"

namespace tocsin::routing {

using core::WallTime;

namespace {

constexpr core::Duration kLookEvery = std::chrono::seconds(10);
/// Comparisons of an issue with a silence that one look may cost; where there are more, it looks less
/// often.
constexpr std::size_t kLookCost = 1'000'000;

bool ends_by_itself(const Silence& silence) {
  return silence.until_resolved || silence.auto_expire_unmatched > core::Duration::zero();
}

}  // namespace

std::optional<WallTime> SilenceWatch::next() const {
  const bool some =
      std::any_of(silences_.in_order().begin(), silences_.in_order().end(), [&](const auto& one) {
        const SilenceState& state = *one.second;
        return ends_by_itself(state.silence) && state.asked_version < state.silence.version &&
               (!looked_at_ || state.silence.ends_at > *looked_at_);
      });
  if (!some) return std::nullopt;
  return looked_at_ ? *looked_at_ + period_ : WallTime{};
}

void SilenceWatch::look_at_issues(WallTime now, std::vector<Seen>& seen) const {
  std::vector<std::size_t> matching;
  issues_.for_each([&](const IssueState& issue) {
    if (issue.issue.shadow || is_silence_notice(issue.issue.rule())) return;
    silences_.match(issue.issue.labels, matching);
    for (const std::size_t i : matching) {
      seen[i].firing = seen[i].firing || issue.firing;
      if (issue.firing) continue;
      // As far as anybody knew, it fired until its end was heard of.
      const WallTime ended = issue.issue.ends_at.value_or(now);
      const WallTime heard = std::max(ended, issue.changed_at.value_or(issue.last_transition));
      seen[i].ended_at = std::max(seen[i].ended_at, std::min(now, heard));
    }
  });
}

void SilenceWatch::look(WallTime now) {
  if (looked_at_ && now < *looked_at_ + period_) return;
  looked_at_ = now;
  const std::size_t cost = silences_.in_order().size() * issues_.size() / kLookCost;
  period_ = kLookEvery * static_cast<core::Duration::rep>(1 + cost);
  if (silences_.in_order().empty()) return;
  std::vector<Seen> seen(silences_.in_order().size());
  look_at_issues(now, seen);
  for (std::size_t i = 0; i < seen.size(); ++i) {
    const auto& [id, state] = silences_.in_order()[i];
    note(id, *state, seen[i], now);
  }
}

/// What the silence matched is written down when it begins and when it ends, and not at each look.
void SilenceWatch::note(std::string_view id, SilenceState& state, const Seen& seen, WallTime now) {
  const Silence& silence = state.silence;
  if (now <= silence.starts_at || now >= silence.ends_at) return;
  // What was over before the silence began is not what it is about.
  if (!seen.firing && seen.ended_at >= silence.starts_at && seen.ended_at > state.matched_at) {
    state.matched_at = seen.ended_at;
    silences_.touch(id);
  }
  if (seen.firing != state.matching) {
    state.matching = seen.firing;
    if (seen.firing || state.matched_at == WallTime{}) state.matched_at = now;
    silences_.touch(id);
  }
  if (seen.firing || state.asked_version >= silence.version) return;
  const bool matched = state.matched_at != WallTime{};
  if (silence.until_resolved && matched && now >= state.matched_at + silence.quiet_for) {
    return end(id, state, "resolved", now);
  }
  const WallTime since = std::max(silence.starts_at, state.matched_at);
  const core::Duration patience = silence.auto_expire_unmatched;
  if (patience > core::Duration::zero() && now - since >= patience) {
    end(id, state, "unmatched", now);
  }
}

void SilenceWatch::end(std::string_view id, SilenceState& state, const char* why, WallTime now) {
  Silence ended = state.silence;
  ended.ends_at = now;
  ended.updated_at = now;
  ended.ended_by = why;
  ++ended.version;
  state.asked_version = state.silence.version;
  silences_.touch(id);
  asked_.push_back({"silence/" + std::string(id), silence_json(ended)});
}

}  // namespace tocsin::routing
