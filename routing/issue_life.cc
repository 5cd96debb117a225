#include "routing/issue_life.h"

#include <algorithm>
#include <string>
#include <utility>

namespace tocsin::routing {
namespace {

using core::Issue;
using core::IssueStatus;
using core::WallTime;

/// Sources of one issue whose sequences are remembered; a producer that makes up ever new ones must
/// not make its state grow.
constexpr std::size_t kMaxSources = 64;

/// Sequences order reports of one source; times order the rest.
bool newer_or_same(const Issue& report, const Issue& known) {
  if (report.sequence != 0 && known.sequence != 0 && report.source == known.source) {
    return report.sequence >= known.sequence;
  }
  return report.time >= known.time;
}

bool same_run(const Issue& a, const Issue& b) { return !a.run.uid.nil() && a.run.uid == b.run.uid; }

/// An attempt that was not said is neither earlier nor later than another.
bool earlier_attempt(const Issue& report, const Issue& than) {
  return same_run(report, than) && report.run.attempt != 0 && report.run.attempt < than.run.attempt;
}

/// A later report of the same end: what it says besides the end.
void describe(Issue& issue, const Issue& report) {
  issue.summary = report.summary;
  issue.description = report.description;
  issue.recommendation = report.recommendation;
  issue.runbook_url = report.runbook_url;
  issue.annotations = report.annotations;
  issue.generator_url = report.generator_url;
  issue.step = report.step;
  issue.global_step = report.global_step;
  issue.evidence = report.evidence;
}

void remember_sequence(IssueState& state, const std::string& source, std::uint64_t sequence) {
  if (sequence == 0) return;
  std::uint64_t& seen = state.sequences[source];
  seen = std::max(seen, sequence);
  if (state.sequences.size() <= kMaxSources) return;
  const auto first = state.sequences.begin();
  state.sequences.erase(first->first == source ? std::next(first) : first);
}

/// What an episode followed from stands with its first report: later ones name what still fires then.
void replace(Issue& issue, Issue report) {
  report.caused_by = std::move(issue.caused_by);
  issue = std::move(report);
}

/// Fires as before, in the same words: what differs is when it was said, and of which step.
bool says_the_same(const Issue& known, const Issue& report) {
  const auto& a = known.evidence;
  const auto& b = report.evidence;
  const auto same_number = [](const core::NamedNumber& one, const core::NamedNumber& other) {
    return one.name == other.name && one.value == other.value;
  };
  const bool same_threshold = a.threshold.has_value() == b.threshold.has_value() &&
                              (!a.threshold || same_number(*a.threshold, *b.threshold));
  return known.source == report.source && known.run.uid == report.run.uid &&
         known.run.attempt == report.run.attempt && known.severity == report.severity &&
         known.shadow == report.shadow && known.kind == report.kind &&
         known.params_hash == report.params_hash && known.mode == report.mode &&
         known.explicit_expiry == report.explicit_expiry && known.ends_at == report.ends_at &&
         known.starts_at <= report.starts_at && known.labels == report.labels &&
         known.summary == report.summary && known.description == report.description &&
         known.recommendation == report.recommendation && known.runbook_url == report.runbook_url &&
         known.annotations == report.annotations && known.generator_url == report.generator_url &&
         a.op == b.op && same_number(a.observed, b.observed) && same_threshold &&
         a.affected.hit == b.affected.hit && a.affected.evaluated == b.affected.evaluated &&
         a.affected.worst == b.affected.worst && a.values == b.values;
}

bool is_stale(const IssueState& state, const Issue& report) {
  if (state.key.empty()) return false;
  const auto seen = state.sequences.find(report.source);
  if (report.sequence != 0 && seen != state.sequences.end() && report.sequence < seen->second) {
    return true;
  }
  return earlier_attempt(report, state.issue);
}

/// Its producer says so by number: whatever the clocks were, it came after what is known.
bool surely_later(const IssueState& state, const Issue& report) {
  const auto seen = state.sequences.find(report.source);
  return report.sequence != 0 && seen != state.sequences.end() && report.sequence > seen->second;
}

/// Who has lost what it knew (the engine says `state_incomplete`) counts from the beginning again: a
/// smaller number, of a later time. A report that is read late has an earlier one.
bool counts_anew(const IssueState& state, const Issue& report) {
  const auto seen = state.sequences.find(report.source);
  return report.sequence != 0 && seen != state.sequences.end() && report.sequence < seen->second &&
         report.time > state.issue.time;
}

/// A firing report without an end times out, unless its producer promised to resolve it. A timeout
/// never shortens an end that a producer named.
void set_expiry(IssueState& state, const Issue& report, WallTime now, core::Duration timeout) {
  if (report.explicit_expiry || report.ends_at) {
    state.expires_at = report.ends_at;
    state.expiry_explicit = true;
    return;
  }
  const WallTime until = now + timeout;
  if (!state.expiry_explicit) {
    state.expires_at = until;
  } else if (state.expires_at) {
    state.expires_at = std::max(*state.expires_at, until);
  }
}

void begin(IssueState& state, Issue report, WallTime now, core::Duration timeout) {
  state.firing = true;
  ++state.episode;
  state.expires_at.reset();
  state.expiry_explicit = false;
  state.last_transition = now;
  set_expiry(state, report, now, timeout);
  state.issue = std::move(report);
  state.issue.resolution = core::Resolution::none;
}

Effect apply_firing(IssueState& state, Issue report, WallTime now, core::Duration timeout) {
  if (state.firing) {
    if (report.ends_at && *report.ends_at < state.issue.starts_at) return Effect::stale;
    const WallTime starts_at = std::min(state.issue.starts_at, report.starts_at);
    const Effect effect = says_the_same(state.issue, report) ? Effect::repeated : Effect::updated;
    set_expiry(state, report, now, timeout);
    if (newer_or_same(report, state.issue)) replace(state.issue, std::move(report));
    state.issue.starts_at = starts_at;
    return effect;
  }
  const bool known = state.last_transition != WallTime{};
  const bool next_attempt = known && earlier_attempt(state.issue, report);
  const bool touches =
      known && !next_attempt && state.issue.ends_at && report.starts_at <= *state.issue.ends_at;
  if (touches && !newer_or_same(report, state.issue)) return Effect::stale;
  if (!touches || state.episode == 0) {
    begin(state, std::move(report), now, timeout);
    return Effect::began;
  }
  const WallTime starts_at = std::min(state.issue.starts_at, report.starts_at);
  --state.episode;  // begin() counts it again: the same episode goes on
  report.caused_by = std::move(state.issue.caused_by);
  begin(state, std::move(report), now, timeout);
  state.issue.starts_at = starts_at;
  return Effect::resumed;
}

Effect apply_resolved(IssueState& state, Issue report, WallTime now) {
  if (state.firing) {
    // A start after what was said of it since is one of a clock that has been put right.
    const WallTime began = std::min(state.issue.starts_at, state.issue.time);
    const bool earlier = *report.ends_at < began || !newer_or_same(report, state.issue);
    if (earlier && !surely_later(state, report)) return Effect::stale;
    const WallTime starts_at = std::min({state.issue.starts_at, report.starts_at, *report.ends_at});
    replace(state.issue, std::move(report));
    state.issue.starts_at = starts_at;
    if (state.issue.resolution == core::Resolution::none) {
      state.issue.resolution = core::Resolution::recovered;
    }
    state.firing = false;
    state.expires_at.reset();
    state.last_transition = now;
    return Effect::ended;
  }
  if (state.last_transition == WallTime{}) {
    state.issue = std::move(report);
    state.last_transition = now;
    return Effect::orphan;
  }
  if (*report.ends_at < state.issue.starts_at) return Effect::stale;
  if (report.starts_at > *state.issue.ends_at) return Effect::orphan;
  if (*report.ends_at >= *state.issue.ends_at) {
    describe(state.issue, report);
    state.issue.ends_at = report.ends_at;
  }
  return Effect::updated;
}

}  // namespace

Issue normalized(Issue issue, WallTime now, core::Duration max_future, bool& clamped) {
  if (issue.time == WallTime{}) issue.time = now;
  if (issue.starts_at == WallTime{}) issue.starts_at = issue.time;
  clamped = issue.starts_at > now + max_future;
  if (clamped) issue.starts_at = now;
  if (issue.status == IssueStatus::resolved) {
    const WallTime end = issue.ends_at.value_or(issue.time);
    issue.starts_at = std::min(issue.starts_at, end);
    // Not before its start: on a clock that is behind the producer's the end would be one of an
    // earlier episode, and the issue would fire for ever.
    issue.ends_at = std::max(std::min(end, now), issue.starts_at);
  }
  return issue;
}

Effect apply(IssueState& state, Issue report, WallTime now, core::Duration resolve_timeout) {
  // A producer that has forgotten the attempt before may count from the beginning again.
  if (earlier_attempt(state.issue, report)) state.sequences.erase(report.source);
  if (counts_anew(state, report)) {
    state.sequences.erase(report.source);
    state.issue.sequence = 0;
  }
  if (is_stale(state, report)) return Effect::stale;
  const std::string source = report.source;
  const std::uint64_t sequence = report.sequence;
  const Effect effect = report.status == IssueStatus::firing
                            ? apply_firing(state, std::move(report), now, resolve_timeout)
                            : apply_resolved(state, std::move(report), now);
  remember_sequence(state, source, sequence);
  return effect;
}

void resolve(IssueState& state, core::Resolution resolution, WallTime at) {
  if (!state.firing) return;
  state.firing = false;
  state.issue.status = IssueStatus::resolved;
  state.issue.resolution = resolution;
  state.issue.ends_at = std::max(at, state.issue.starts_at);
  state.expires_at.reset();
  state.last_transition = *state.issue.ends_at;
}

}  // namespace tocsin::routing
