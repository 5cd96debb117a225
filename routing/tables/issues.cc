#include "routing/tables/issues.h"

#include <algorithm>
#include <chrono>

#include "routing/tables/runs.h"

namespace tocsin::routing {

using core::Issue;
using core::IssueStatus;
using core::Resolution;
using core::WallTime;

namespace {

/// How old the times and the step of an issue may be in its record while it is only said again.
constexpr core::Duration kRepeatGrain = std::chrono::minutes(5);

/// What is heard at the instant of a tick is heard after it: the tick may have been carried out.
constexpr core::Duration kBehindTick = std::chrono::nanoseconds(1);

WallTime changed_at(const IssueState& state) {
  return state.changed_at.value_or(state.last_transition);
}

}  // namespace

IssueState& Issues::of(const core::Labels& labels) {
  const std::string key = core::issue_key(labels);
  IssueState& state = table_.make(key);
  if (state.key.empty()) state.key = key;
  return state;
}

Effect Issues::merge(IssueState& state, const Issue& report, WallTime now, bool untold) {
  repeats_.forget(state);
  if (!state.issue.labels.are(report.labels)) state.leaves = nullptr;
  std::optional<Issue> last;
  if (!state.firing && untold) last = state.issue.whole();
  const bool fired = state.firing;
  const core::RunUid run = state.issue.run.uid;
  const SharedText source = state.newest.source;
  const Effect effect = apply(state, report, now, limits_.resolve_timeout);
  if (state.newest.source != source) share_sources(state);
  if (last && effect == Effect::began) state.past[state.episode - 1] = std::move(*last);
  outlive_run(state, now);
  if (effect == Effect::stale) return effect;
  // A report may name another run: the issue ends with that one, and its key lies nowhere else.
  if (fired && state.issue.run.uid != run) {
    leave_run(state, run.nil() ? state.issue.labels.get("run_uid") : core::to_text(run));
    if (state.firing) join_run(state);
  }
  follow(state, effect, now);
  save(state, effect, now);
  return effect;
}

void Issues::say_again(IssueState& state, const Said& said, WallTime now) {
  routing::say_again(state, said, now, limits_.resolve_timeout);
  outlive_run(state, now);
  follow(state, Effect::repeated, now);
  save(state, Effect::repeated, now);
}

void Issues::outlive_run(IssueState& state, WallTime now) const {
  if (state.firing && !state.expires_at && outlives_its_run(state.issue)) {
    state.expires_at = now + limits_.retention;
  }
}

void Issues::save(IssueState& state, Effect effect, WallTime now) {
  if (effect == Effect::repeated && now - state.saved_at < repeat_grain(state)) return;
  state.saved_at = now;
  touch(state);
}

/// Counts, times and the index follow what a report did.
void Issues::follow(IssueState& state, Effect effect, WallTime now) {
  switch (effect) {
    case Effect::stale:
      break;
    case Effect::began:
    case Effect::resumed:
      began(state);
      break;
    case Effect::ended:
      ended(state);
      break;
    case Effect::orphan:
      retire(state);
      break;
    case Effect::updated:
    case Effect::repeated:
      if (!state.firing) break;
      if (state.expires_at) {
        agenda_.set(Due::expire_issue, state.key, *state.expires_at);
      } else {
        agenda_.cancel(Due::expire_issue, state.key);
      }
      break;
  }
  if (effect == Effect::repeated || effect == Effect::orphan) return;
  change(state, now);
}

void Issues::change(IssueState& state, WallTime now) {
  state.changed_at = now == state.last_transition ? std::nullopt : std::optional<WallTime>(now);
  index_.follow(state, now + kBehindTick);
}

/// An expiry that a report put off is put off in the record well before it comes.
core::Duration Issues::repeat_grain(const IssueState& state) const {
  return state.expires_at ? std::min<core::Duration>(kRepeatGrain, limits_.resolve_timeout / 4)
                          : kRepeatGrain;
}

bool Issues::end(IssueState& state, Resolution resolution, WallTime at, WallTime now) {
  if (!state.firing) return false;
  resolve(state, resolution, at);
  change(state, std::max(at, now));
  ended(state);
  touch(state);
  return true;
}

void Issues::began(IssueState& state) {
  ++firing_;
  join_run(state);
  agenda_.cancel(Due::forget_issue, state.key);
  if (state.expires_at) agenda_.set(Due::expire_issue, state.key, *state.expires_at);
  transitions_.push_back({state.key.text(), state.episode, IssueStatus::firing, Resolution::none});
}

void Issues::ended(IssueState& state) {
  --firing_;
  leave_run(state, run_of(state.issue));
  agenda_.cancel(Due::expire_issue, state.key);
  transitions_.push_back(
      {state.key.text(), state.episode, IssueStatus::resolved, state.issue.resolution});
  if (state.groups.empty()) retire(state);
}

void Issues::join_run(IssueState& state) {
  const std::string run = run_of(state.issue);
  if (run.empty()) return;
  std::vector<IssueState*>& those = firing_of_run_[run];
  state.place_in_run = static_cast<std::uint32_t>(those.size());
  those.push_back(&state);
}

void Issues::leave_run(IssueState& state, const std::string& run) {
  const auto found = firing_of_run_.find(run);
  if (found == firing_of_run_.end()) return;
  std::vector<IssueState*>& those = found->second;
  if (state.place_in_run >= those.size() || those[state.place_in_run] != &state) return;
  IssueState* const last = those.back();
  those[state.place_in_run] = last;
  last->place_in_run = state.place_in_run;
  those.pop_back();
  if (those.empty()) firing_of_run_.erase(found);
}

void Issues::share_sources(IssueState& state) {
  sources_.share(state.newest.source);
  state.sequences.share_with(sources_);
}

void Issues::retire(const IssueState& state) {
  agenda_.set(Due::forget_issue, state.key, state.last_transition + limits_.retention);
}

void Issues::forget(std::string_view issue_key, WallTime now) {
  IssueState* const found = table_.find(issue_key);
  // A member is kept: it leaves its last group first, and is retired again there.
  if (found == nullptr || found->firing || !found->groups.empty()) return;
  repeats_.forget(*found);
  index_.forget(*found, now);
  table_.erase(issue_key);
}

void Issues::expect(std::string_view issue_key) {
  const IssueState* issue = table_.find(issue_key);
  if (issue != nullptr && issue->firing && issue->expires_at) {
    agenda_.set(Due::expire_issue, issue_key, *issue->expires_at);
  }
}

std::set<std::string> Issues::firing_of(const std::string& run) const {
  const auto found = firing_of_run_.find(run);
  if (found == firing_of_run_.end()) return {};
  std::set<std::string> keys;
  for (const IssueState* issue : found->second) keys.insert(issue->key.text());
  return keys;
}

// With the first bytes of the keys beside them, hardly any comparison has to go and see a key.
std::vector<IssueState*> Issues::by_key() const {
  std::vector<std::pair<std::uint64_t, IssueState*>> all;
  all.reserve(table_.size());
  table_.for_each([&](IssueState& state) {
    std::uint64_t first = 0;
    const std::string_view key = state.key;
    for (std::size_t i = 0; i < sizeof first; ++i) {
      first = first << 8U | (i < key.size() ? static_cast<unsigned char>(key[i]) : 0U);
    }
    all.emplace_back(first, &state);
  });
  std::sort(all.begin(), all.end(), [](const auto& a, const auto& b) {
    return a.first != b.first ? a.first < b.first : a.second->key < b.second->key;
  });
  std::vector<IssueState*> out;
  out.reserve(all.size());
  for (const auto& one : all) out.push_back(one.second);
  return out;
}

core::Status Issues::restore(std::string_view issue_key, std::string_view value) {
  return table_.restore(issue_key, [&](IssueState& state) {
    state.key = issue_key;
    return decode(value, sources_, state);
  });
}

// In any order: none of this depends on what came before.
void Issues::restored() {
  table_.for_each([this](IssueState& state) {
    share_sources(state);
    index_.follow(state, changed_at(state) + kBehindTick);
    if (!state.firing) return;
    ++firing_;
    join_run(state);
    if (state.expires_at) agenda_.set(Due::expire_issue, state.key, *state.expires_at);
  });
  if (!index_.asked()) return;
  table_.for_each([this](IssueState& state) {
    if (!state.firing) index_.recall_end(state, changed_at(state) + kBehindTick);
  });
}

}  // namespace tocsin::routing
