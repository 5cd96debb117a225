#include "routing/flush/flush.h"

#include <algorithm>
#include <map>
#include <set>
#include <string_view>
#include <tuple>
#include <utility>

#include "core/identity.h"
#include "routing/tables/size.h"
#include "routing/tables/told.h"

namespace tocsin::routing {
namespace {

using core::NotificationKind;
using core::WallTime;

bool knows(const TellLog& log, const IssueState& issue) {
  const auto found = log.told.find(issue.key);
  return found != log.told.end() && found->second.episode == issue.episode;
}

/// A firing member that followed from another one: as long as that one fires here and is told, or is
/// about to be, it is evidence and no news of its own. But what is worse than its cause is.
class Folding {
 public:
  Folding(const FlushDecision& decision, const TellLog& log) {
    for (const auto* list : {&decision.firing, &decision.suppressed}) {
      for (const Mention& mention : *list) {
        const IssueState& issue = *mention.state;
        if (list == &decision.firing || knows(log, issue)) by_key_.emplace(issue.key, &issue.issue);
      }
    }
  }
  [[nodiscard]] bool folds(const IssueState& issue) const {
    const auto& causes = issue.issue.caused_by;
    return std::any_of(causes.begin(), causes.end(), [&](const core::Cause& cause) {
      const auto found = by_key_.find(cause.issue_key);
      return found != by_key_.end() && cause.issue_key != issue.key &&
             found->second->severity >= issue.issue.severity && !follows(*found->second, issue);
    });
  }

 private:
  /// Of two that name each other, because one of them fired before and fires again, the later one
  /// follows.
  static bool follows(const KeptIssue& cause, const IssueState& issue) {
    return std::any_of(cause.caused_by.begin(), cause.caused_by.end(),
                       [&](const core::Cause& one) { return one.issue_key == issue.key; }) &&
           cause.starts_at > issue.issue.starts_at;
  }

  std::map<std::string_view, const KeptIssue*> by_key_;
};

/// Sorts the members into the decision's lists, and moves resolves that must wait into `owed`.
class Sorter {
 public:
  Sorter(const FlushContext& context, TellLog& log, FlushDecision& decision)
      : context_(context),
        log_(log),
        decision_(decision),
        closed_(context.further && log.told.empty() &&
                !(context.occasion != nullptr && context.occasion->opens)) {}

  void add(const FlushMember& member) {
    const IssueState& issue = *member.state;
    if (member.flapping) stand_for_those_before(issue);
    if (member.held) {
      if (knows(log_, issue))
        decision_.held.push_back({&issue, issue.episode, true, false, nullptr});
      return;
    }
    const bool visible = member.visible_to(context_.integration);
    const bool belongs = !closed_ && (!member.strayed || knows(log_, issue));
    if (member.firing && context_.integration.enabled && visible && belongs && wanted(issue)) {
      decision_.firing.push_back({&issue, issue.episode, true, member.over, member.ack});
      reminded_ = reminded_ || (member.reminded && !member.over && knows(log_, issue));
      speak_for_debt(issue);
      return;
    }
    if (member.firing && knows(log_, issue)) {
      decision_.suppressed.push_back({&issue, issue.episode, true, member.over, member.ack});
      return;
    }
    if (const auto told = log_.told.find(issue.key); told != log_.told.end()) {
      end_told(issue, told->second.episode, visible);
    } else if (const auto owed = log_.owed.find(issue.key); owed != log_.owed.end() && visible) {
      decision_.resolved.push_back({&issue, owed->second.episode, false});
    }
  }

  /// Firing episodes among the visible that the log does not know and that are not folded.
  [[nodiscard]] bool has_news() const {
    const auto unknown = [&](const Mention& mention) { return !knows(log_, *mention.state); };
    const auto& firing = decision_.firing;
    if (std::none_of(firing.begin(), firing.end(), unknown)) return false;
    if (context_.route.beside) return true;  // a rule's actions are for that rule
    const Folding folding(decision_, log_);
    return std::any_of(firing.begin(), firing.end(), [&](const Mention& mention) {
      return unknown(mention) && !folding.folds(*mention.state);
    });
  }
  /// Something visible fires that the log does not know: without news it is folded.
  [[nodiscard]] bool knows_less() const {
    return std::any_of(decision_.firing.begin(), decision_.firing.end(),
                       [&](const Mention& mention) { return !knows(log_, *mention.state); });
  }
  /// Something that was told still fires, and a silence that held it back has ended.
  [[nodiscard]] bool reminds() const { return reminded_; }
  [[nodiscard]] bool has_escalated() const {
    return std::any_of(
        decision_.firing.begin(), decision_.firing.end(), [&](const Mention& mention) {
          const auto told = log_.told.find(mention.state->key);
          return told != log_.told.end() && mention.state->issue.severity > told->second.severity;
        });
  }

 private:
  /// The far side knows that it flaps: this episode stands for those before it.
  void stand_for_those_before(const IssueState& issue) {
    const auto told = log_.told.find(issue.key);
    if (told == log_.told.end() || told->second.episode == issue.episode) return;
    told->second.episode = issue.episode;
    decision_.changed = true;
  }

  /// The newer episode speaks for the end that is owed, if its message arrives.
  void speak_for_debt(const IssueState& issue) {
    const auto owed = log_.owed.find(issue.key);
    if (owed == log_.owed.end()) return;
    decision_.over.emplace_back(
        issue.key.text(), TellLog::Told{owed->second.episode, 0, issue.issue.severity, false});
    log_.owed.erase(owed);
    decision_.changed = true;
  }
  [[nodiscard]] bool wanted(const IssueState& issue) const {
    return context_.filter == nullptr || context_.filter->matches(issue.issue.labels);
  }

  /// A told episode is over (the issue may fire again, unseen, in a later one).
  void end_told(const IssueState& issue, std::uint64_t episode, bool visible) {
    // Who keeps no incident open has read the end with the beginning.
    if (log_.told.at(issue.key).over && !context_.integration.stateful) return;
    const SuppressedEnd policy = context_.integration.suppressed_end();
    if (!context_.integration.send_resolved || visible || policy == SuppressedEnd::send) {
      decision_.resolved.push_back({&issue, episode, false});
    } else if (policy == SuppressedEnd::defer) {
      log_.owed[issue.key] = {episode, context_.tick};
      ++decision_.ends_deferred;
      decision_.changed = true;
    } else {
      ++decision_.ends_dropped;  // it leaves `told` with the books
    }
  }

  const FlushContext& context_;
  TellLog& log_;
  FlushDecision& decision_;
  const bool
      closed_;  // it has heard the end, and hears of what follows only if the ladder comes there
  bool reminded_ = false;
};

/// How many there were.
std::size_t drop_stale_debts(const FlushContext& context, TellLog& log) {
  std::size_t dropped = 0;
  for (auto at = log.owed.begin(); at != log.owed.end();) {
    const bool old = context.tick - at->second.since > context.owed_max_age;
    dropped += old ? 1 : 0;
    at = old ? log.owed.erase(at) : std::next(at);
  }
  return dropped;
}

/// Has somebody taken on all that it would be told of again?
bool all_acked(const FlushDecision& decision) {
  return std::all_of(decision.firing.begin(), decision.firing.end(),
                     [](const Mention& mention) { return mention.ack != nullptr; });
}

bool repeat_is_due(const FlushContext& context, const TellLog& log, const FlushDecision& decision) {
  if (decision.firing.empty() || !log.last_tick || context.further) return false;
  if (all_acked(decision)) return false;
  WallTime oldest = context.tick;
  for (const auto* list : {&decision.firing, &decision.suppressed}) {
    for (const Mention& mention : *list) oldest = std::min(oldest, mention.state->issue.starts_at);
  }
  return context.tick - *log.last_tick >= context.route.repeat_every(context.tick - oldest);
}

/// Resolves that stay owed after this flush: those not among the ones it would tell.
bool owes_more(const TellLog& log, const FlushDecision& decision) {
  const auto paid =
      std::count_if(decision.resolved.begin(), decision.resolved.end(),
                    [&](const Mention& mention) { return log.owed.count(mention.state->key) > 0; });
  return log.owed.size() > static_cast<std::size_t>(paid);
}

/// Is there something to tell that no issue is the reason of?
bool occasion_is_due(const FlushContext& context, const TellLog& log,
                     const FlushDecision& decision) {
  if (context.occasion == nullptr || !decision.still_firing || decision.firing.empty())
    return false;
  return context.occasion->opens || !log.told.empty();
}

void choose(const FlushContext& context, const TellLog& log, const Sorter& sorter,
            FlushDecision& decision) {
  const auto say = [&](std::string_view reason, NotificationKind kind) {
    decision.reason = reason;
    decision.kind = kind;
  };
  // What the far side never got it can neither update nor close.
  const bool placed = incident_open(log);
  const auto further = [&](NotificationKind kind) {
    return placed ? kind : NotificationKind::open;
  };
  const bool tells_resolves = context.integration.send_resolved && placed;
  const bool occasion = occasion_is_due(context, log, decision);
  // NOLINTNEXTLINE(bugprone-branch-clone): in the order of what is worth a message; some say the same
  if (occasion && context.occasion->opens) {
    say(context.occasion->reason, further(NotificationKind::update));
  } else if (log.told.empty() && !decision.firing.empty()) {
    say("first", NotificationKind::open);
  } else if (sorter.has_news()) {
    say("new_issues", further(NotificationKind::update));
  } else if (!decision.still_firing && !decision.resolved.empty() && !owes_more(log, decision)) {
    say("all_resolved", NotificationKind::close);
    if (!tells_resolves) decision.kind.reset();
  } else if (tells_resolves && !decision.resolved.empty()) {
    say("some_resolved", NotificationKind::update);
  } else if (sorter.has_escalated()) {
    say("severity_raised", further(NotificationKind::update));
  } else if (occasion) {
    say(context.occasion->reason, further(NotificationKind::update));
  } else if (repeat_is_due(context, log, decision)) {
    say("repeat", further(NotificationKind::repeat));
  } else if (sorter.reminds()) {
    say("unmuted", further(NotificationKind::update));
  } else if (sorter.knows_less()) {
    decision.reason = "folded";  // counted: people are told of less than what fires
  }
}

/// Keeps one firing episode in `log.told`. Returns whether anything changed. `shown`: the message lists it.
bool keep_mention(const FlushContext& context, FlushDecision& decision, TellLog& log,
                  const Mention& mention, bool shown) {
  const auto [known, fresh] = log.told.try_emplace(mention.state->key);
  const bool same = !fresh && known->second.episode == mention.episode;
  TellLog::Told entry{mention.episode, 0, mention.state->issue.severity, false};
  entry.over = same ? known->second.over : mention.over;
  if (same && !shown) entry.severity = known->second.severity;
  if (same) entry.by = known->second.by;
  if (!same && decision.kind) entry.by = log.seq + 1;
  if (!same && !fresh && decision.kind && context.integration.send_resolved) {
    decision.over.emplace_back(mention.state->key.text(), known->second);
  }
  const bool changed = fresh || !(known->second == entry);
  known->second = entry;
  return changed;
}

/// Afterwards `log.told` holds the firing episodes of the decision and nothing else. Returns whether
/// it did not before.
bool keep_told(const FlushContext& context, FlushDecision& decision, TellLog& log) {
  bool changed = false;
  for (const auto* list : {&decision.firing, &decision.suppressed, &decision.held}) {
    const bool shown = decision.kind.has_value() && list == &decision.firing;
    for (const Mention& mention : *list) {
      // Folded, and no message lists it yet: the far side does not know it.
      if (!decision.kind && !knows(log, *mention.state)) continue;
      changed = keep_mention(context, decision, log, mention, shown) || changed;
    }
  }
  const std::size_t kept =
      decision.firing.size() + decision.suppressed.size() + decision.held.size();
  if (log.told.size() == kept) return changed;
  std::set<std::string_view> still;
  for (const auto* list : {&decision.firing, &decision.suppressed, &decision.held}) {
    for (const Mention& mention : *list) still.insert(mention.state->key);
  }
  const auto past = [&](const auto& entry) { return still.count(entry.first) == 0; };
  return std::erase_if(log.told, past) > 0 || changed;
}

void keep_books(const FlushContext& context, FlushDecision& decision, TellLog& log) {
  if (decision.kind && context.integration.send_resolved) {
    for (const Mention& mention : decision.resolved) {
      const auto told = log.told.find(mention.state->key);
      TellLog::Told entry{mention.episode, 0, mention.state->issue.severity, false};
      if (told != log.told.end()) entry = told->second;
      decision.over.emplace_back(mention.state->key.text(), entry);
    }
  }
  decision.changed = keep_told(context, decision, log) || decision.changed;
  for (const Mention& mention : decision.resolved) {
    decision.changed = log.owed.erase(mention.state->key) > 0 || decision.changed;
  }
  if (!decision.kind) return;
  log.last_tick = context.tick;
  ++log.seq;
  decision.changed = true;
}

}  // namespace

core::Issue report_of(const Mention& mention) {
  const auto past = mention.state->past.find(mention.episode);
  return past == mention.state->past.end() ? mention.state->issue.whole() : past->second;
}

bool told_before(const Mention& a, const Mention& b) {
  const auto rank = [](const Mention& mention) {
    return std::make_tuple(-static_cast<int>(mention.state->issue.severity),
                           !mention.state->issue.caused_by.empty(), mention.state->issue.starts_at,
                           std::string_view(mention.state->key), mention.episode);
  };
  return rank(a) < rank(b);
}

FlushDecision decide(const std::vector<FlushMember>& members, const FlushContext& context,
                     TellLog& log, std::uint64_t& owed_dropped) {
  FlushDecision decision;
  const std::size_t stale = drop_stale_debts(context, log);
  owed_dropped += stale;
  decision.changed = stale > 0;
  Sorter sorter(context, log, decision);
  for (const FlushMember& member : members) sorter.add(member);
  const auto fires = [](const Mention& mention) { return !mention.over; };
  decision.still_firing =
      std::any_of(decision.firing.begin(), decision.firing.end(), fires) ||
      std::any_of(decision.suppressed.begin(), decision.suppressed.end(), fires) ||
      !decision.held.empty();
  choose(context, log, sorter, decision);
  if (!context.integration.enabled) decision.kind.reset();
  keep_books(context, decision, log);
  return decision;
}

}  // namespace tocsin::routing
