#include "routing/suppress/silence_rules.h"

#include <algorithm>
#include <string>
#include <utility>

namespace tocsin::routing {

using core::Status;
using core::WallTime;

namespace {

core::Error stands(std::string message) {
  return {core::Code::failed_precondition, std::move(message)};
}

Status check_set(const std::string& text) {
  const auto matchers = Matchers::parse(text);
  if (!matchers) return matchers.error();
  const auto& terms = matchers->terms();
  for (std::size_t i = 0; i < terms.size(); ++i) {
    if (!matchers->holds(i, "")) return core::ok();
  }
  return core::invalid_argument(
      terms.empty() ? "a silence without matchers would silence everything"
                    : "every matcher also holds where the label is missing: it would silence "
                      "nearly everything");
}

bool only_negative(const std::string& text) {
  const auto matchers = Matchers::parse(text);
  if (!matchers) return false;
  return std::all_of(matchers->terms().begin(), matchers->terms().end(), [](const auto& term) {
    return term.op == MatchOperator::not_equal || term.op == MatchOperator::not_regex;
  });
}

bool same_scope(const Silence& a, const Silence& b) {
  return matcher_sets(a) == matcher_sets(b) && a.recurrence == b.recurrence;
}

}  // namespace

Status check(const Silence& silence) {
  if (!silence.matchers.empty() && !silence.matcher_sets.empty()) {
    return core::invalid_argument("give either matchers or matcher_sets");
  }
  for (const std::string& set : matcher_sets(silence)) {
    if (Status good = check_set(set); !good) return good;
  }
  if (silence.ends_at <= silence.starts_at) {
    return core::invalid_argument("a silence that ends before it begins");
  }
  if (!silence.actions.empty() && silence.actions != "notify" &&
      silence.actions != "stop_training") {
    return core::invalid_argument("actions is \"" + silence.actions +
                                  "\": expected notify or stop_training");
  }
  if (!silence.announce_on_unmute.empty() && silence.announce_on_unmute != "never" &&
      silence.announce_on_unmute != "reminder") {
    return core::invalid_argument("announce_on_unmute is \"" + silence.announce_on_unmute +
                                  "\": expected never or reminder");
  }
  for (const core::Duration duration : {silence.quiet_for, silence.auto_expire_unmatched}) {
    if (duration >= core::Duration::zero()) continue;
    return core::invalid_argument("quiet_for and auto_expire_unmatched are not negative");
  }
  if (silence.recurrence) {
    if (silence.recurrence->windows.empty()) {
      return core::invalid_argument("recurrence: it needs at least one interval");
    }
    const auto calendar = Calendar::compile(silence.recurrence->windows);
    if (!calendar) return core::Error(calendar.error()).in("recurrence");
  }
  return core::ok();
}

Status check_asked(const Silence& silence, std::size_t known, WallTime now, bool force) {
  if (Status good = check(silence); !good) return good;
  if (silence.ends_at <= now) return core::invalid_argument("the end lies in the past");
  if (silence.comment.empty()) {
    return core::invalid_argument("no comment: say why, for those who find it");
  }
  if (silence_json(silence).size() > kMaxSilenceBytes) {
    return core::invalid_argument("the silence is larger than " +
                                  std::to_string(kMaxSilenceBytes >> 10) +
                                  " KiB; shorten its matchers, comment or annotations");
  }
  if (known >= kMaxSilences) {
    return stands("there are " + std::to_string(known) +
                  " silences, as many as may be; expire some first");
  }
  if (force) return core::ok();
  if (silence.ends_at - std::max(silence.starts_at, now) > kMaxSilenceDuration) {
    return core::invalid_argument(
        "the silence is longer than " + core::to_text(kMaxSilenceDuration) +
        "; choose an earlier end, or insist with --force (API: force=true)");
  }
  for (const std::string& set : matcher_sets(silence)) {
    if (!only_negative(set)) continue;
    return core::invalid_argument(set +
                                  " has nothing but negative matchers, which most issues meet; add "
                                  "one with = or =~, or insist with --force (API: force=true)");
  }
  return core::ok();
}

bool same_silence(const Silence& old, const Silence& asked, WallTime now) {
  if (old.ends_at <= now || !same_scope(old, asked)) return false;
  if (old.starts_at == asked.starts_at) return true;
  return old.starts_at > now && asked.starts_at >= now;
}

core::Result<Silence> follow(const Silence* old, Silence next) {
  if (old == nullptr) {
    next.version = std::max<std::uint64_t>(next.version, 1);
    return next;
  }
  if (next == *old) return next;
  if (next.version == 0) {  // of a writer that does not count: the last one wins
    next.version = old->version + 1;
    return next;
  }
  if (next.version <= old->version) {
    return stands("version " + std::to_string(next.version) + " of silence " + next.id +
                  " was written meanwhile by somebody else; look at it and change it again");
  }
  const WallTime at = next.updated_at;
  if (old->ends_at <= at)
    return stands("silence " + next.id + " had expired before it was changed");
  const bool ends_now = next.ends_at <= at;
  if (!same_scope(*old, next) || (!ends_now && !same_silence(*old, next, at))) {
    return stands("silence " + next.id +
                  " has begun: its begin and its matchers stay; expire it and add another one");
  }
  return next;
}

}  // namespace tocsin::routing
