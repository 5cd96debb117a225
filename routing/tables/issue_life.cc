#include "routing/tables/issue_life.h"

#include <algorithm>
#include <string>
#include <utility>

#include "core/episode.h"

namespace tocsin::routing {
namespace {

using core::Issue;
using core::IssueStatus;
using core::WallTime;

/// Sources of one issue whose sequences are remembered; a producer that makes up ever new ones must
/// not make its state grow.
constexpr std::size_t kMaxSources = 64;

/// Sequences order reports of one source; times order the rest.
template <typename Report>
bool newer_or_same(const Report& report, const Newest& known) {
  if (report.sequence != 0 && known.sequence != 0 && report.source == known.source) {
    return report.sequence >= known.sequence;
  }
  return report.time >= known.time;
}

template <typename A, typename B>
bool same_run(const A& a, const B& b) {
  return !a.run.uid.nil() && a.run.uid == b.run.uid;
}

/// An attempt that was not said is neither earlier nor later than another.
template <typename Report, typename Than>
bool earlier_attempt(const Report& report, const Than& than) {
  return same_run(report, than) && report.run.attempt != 0 && report.run.attempt < than.run.attempt;
}

void remember_sequence(IssueState& state, std::string_view source, std::uint64_t sequence) {
  if (sequence == 0) return;
  std::uint64_t& seen = state.sequences[source];
  seen = std::max(seen, sequence);
  if (state.sequences.size() <= kMaxSources) return;
  const auto first = state.sequences.begin();
  state.sequences.erase(first->first == source ? std::next(first) : first);
}

/// A firing report says something that the router did not know: of the run, of its own end, or that
/// it is worse than was found.
bool says_more(const KeptIssue& known, const Issue& report) {
  const bool other_run = !report.run.uid.nil() && (report.run.uid != known.run.uid ||
                                                   report.run.attempt != known.run.attempt);
  return report.severity > known.severity || other_run || known.shadow != report.shadow ||
         known.explicit_expiry != report.explicit_expiry || known.ends_at != report.ends_at ||
         report.starts_at < known.starts_at;
}

template <typename Report>
void follow(IssueState& state, const Report& report) {
  if (state.newest.source != report.source) state.newest.source = report.source;
  state.newest.sequence = report.sequence;
  state.newest.time = report.time;
}

/// A further report of an episode that fires. What was found stays, unless this is worse; what an
/// episode followed from stands with its first report, as later ones name what still fires then.
void adopt(KeptIssue& issue, const Issue& report) {
  if (report.severity > issue.severity) {
    KeptIssue worse(report);
    worse.starts_at = std::min(issue.starts_at, report.starts_at);
    worse.caused_by = std::move(issue.caused_by);
    issue = std::move(worse);
    return;
  }
  if (!report.run.uid.nil()) issue.follow(report.run);
  issue.shadow = report.shadow;
  issue.explicit_expiry = report.explicit_expiry;
  issue.ends_at = report.ends_at;
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
         report.time > state.newest.time;
}

/// A firing report without an end times out, unless its producer promised to resolve it. A timeout
/// never shortens an end that a producer named.
template <typename Report>
void set_expiry(IssueState& state, const Report& report, WallTime now, core::Duration timeout) {
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

void begin(IssueState& state, const Issue& report, WallTime now, core::Duration timeout) {
  state.firing = true;
  ++state.episode;
  state.expires_at.reset();
  state.expiry_explicit = false;
  state.last_transition = now;
  set_expiry(state, report, now, timeout);
  follow(state, report);
  state.issue = KeptIssue(report);
  state.issue.resolution = core::Resolution::none;
  if (report.ending) state.issue.change([](Issue& found) { found.ending.reset(); });
}

/// The end of the present episode was premature: it goes on, with what was found.
void resume(IssueState& state, const Issue& report, WallTime now, core::Duration timeout) {
  state.firing = true;
  state.expires_at.reset();
  state.expiry_explicit = false;
  state.last_transition = now;
  set_expiry(state, report, now, timeout);
  follow(state, report);
  KeptIssue& issue = state.issue;
  issue.change([](Issue& told) {
    told.status = IssueStatus::firing;
    told.resolution = core::Resolution::none;
    told.ending.reset();
  });
  issue.starts_at = std::min(issue.starts_at, report.starts_at);
  adopt(issue, report);
}

Effect apply_firing(IssueState& state, const Issue& report, WallTime now, core::Duration timeout) {
  if (state.firing) {
    if (report.ends_at && *report.ends_at < state.issue.starts_at) return Effect::stale;
    const Effect effect = says_more(state.issue, report) ? Effect::updated : Effect::repeated;
    set_expiry(state, report, now, timeout);
    const WallTime starts_at = std::min(state.issue.starts_at, report.starts_at);
    if (newer_or_same(report, state.newest)) {
      follow(state, report);
      adopt(state.issue, report);
    }
    state.issue.starts_at = starts_at;
    return effect;
  }
  const bool known = state.last_transition != WallTime{};
  const bool next_attempt = known && earlier_attempt(state.issue, report);
  const bool touches =
      known && !next_attempt && state.issue.ends_at && report.starts_at <= *state.issue.ends_at;
  if (touches && !newer_or_same(report, state.newest)) return Effect::stale;
  if (!touches || state.episode == 0) {
    begin(state, report, now, timeout);
    return Effect::began;
  }
  resume(state, report, now, timeout);
  return Effect::resumed;
}

Effect apply_resolved(IssueState& state, const Issue& report, WallTime now) {
  if (state.firing) {
    // A start after what was said of it since is one of a clock that has been put right.
    const WallTime began = std::min(state.issue.starts_at, state.newest.time);
    const bool earlier = *report.ends_at < began || !newer_or_same(report, state.newest);
    if (earlier && !surely_later(state, report)) return Effect::stale;
    follow(state, report);
    state.issue.starts_at = std::min({state.issue.starts_at, report.starts_at, *report.ends_at});
    state.issue.change([&](Issue& found) { core::end_with(found, report); });
    state.firing = false;
    state.expires_at.reset();
    state.last_transition = now;
    return Effect::ended;
  }
  if (state.last_transition == WallTime{}) {
    follow(state, report);
    Issue alone = report;
    core::end_alone(alone);
    state.issue = KeptIssue(alone);
    state.last_transition = now;
    return Effect::orphan;
  }
  if (*report.ends_at < state.issue.starts_at) return Effect::stale;
  if (report.starts_at > *state.issue.ends_at) return Effect::orphan;
  // Another word about the same end: the later one counts, and any one before the router's own.
  const bool later = *report.ends_at >= *state.issue.ends_at;
  state.issue.change([&](Issue& found) {
    const bool unsaid = !found.ending || found.ending->event_id.empty();
    core::Ending ending = core::ending_of(report, found);
    if (!ending.summary.empty() && (later || unsaid)) found.ending = std::move(ending);
    if (later) found.ends_at = report.ends_at;
  });
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

Effect apply(IssueState& state, const Issue& report, WallTime now, core::Duration resolve_timeout) {
  // A producer that has forgotten the attempt before may count from the beginning again.
  if (earlier_attempt(state.issue, report)) state.sequences.erase(report.source);
  if (counts_anew(state, report)) {
    state.sequences.erase(report.source);
    state.newest.sequence = 0;
  }
  if (is_stale(state, report)) return Effect::stale;
  const Effect effect = report.status == IssueStatus::firing
                            ? apply_firing(state, report, now, resolve_timeout)
                            : apply_resolved(state, report, now);
  remember_sequence(state, report.source, report.sequence);
  return effect;
}

bool only_said_again(const IssueState& state, const Said& said) {
  if (!state.firing || state.newest.source != said.source) return false;
  if (said.starts_at < state.issue.starts_at || !newer_or_same(said, state.newest)) return false;
  const auto seen = state.sequences.find(said.source);
  return said.sequence == 0 || seen == state.sequences.end() || said.sequence >= seen->second;
}

void say_again(IssueState& state, const Said& said, WallTime now, core::Duration resolve_timeout) {
  set_expiry(state, state.issue, now, resolve_timeout);
  follow(state, said);
  remember_sequence(state, said.source, said.sequence);
}

bool made_by(const IssueState& state, const Issue& report) {
  const KeptIssue& issue = state.issue;
  const bool newest = state.newest.source == report.source &&
                      state.newest.sequence == report.sequence && state.newest.time == report.time;
  return state.firing && report.status == IssueStatus::firing && newest && !report.ends_at &&
         !says_more(issue, report) && issue.run.uid == report.run.uid &&
         issue.run.attempt == report.run.attempt && issue.labels.are(report.labels);
}

void resolve(IssueState& state, core::Resolution resolution, WallTime at) {
  if (!state.firing) return;
  state.firing = false;
  state.issue.change([&](Issue& found) {
    found.status = IssueStatus::resolved;
    found.resolution = resolution;
    found.ending = core::Ending{std::string(core::end_sentence(resolution)), {}, {}, {}};
    found.ends_at = std::max(at, found.starts_at);
  });
  state.expires_at.reset();
  state.last_transition = *state.issue.ends_at;
}

}  // namespace tocsin::routing
