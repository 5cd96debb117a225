#include "routing/flush.h"

#include <algorithm>
#include <string_view>
#include <tuple>
#include <utility>

#include "core/identity.h"

namespace tocsin::routing {
namespace {

using core::NotificationKind;
using core::WallTime;

constexpr core::Duration kCloseMaxAge = std::chrono::hours(24 * 7);

bool knows(const TellLog& log, const IssueState& issue) {
  const auto found = log.told.find(issue.key);
  return found != log.told.end() && found->second.episode == issue.episode;
}

/// Sorts the members into the verdict's lists, and moves resolves that must wait into `owed`.
class Sorter {
 public:
  Sorter(const FlushContext& context, TellLog& log, Verdict& verdict)
      : context_(context), log_(log), verdict_(verdict) {}

  void add(const FlushMember& member) {
    const IssueState& issue = *member.state;
    const bool visible = member.reasons.empty();
    const bool belongs = !member.strayed || knows(log_, issue);
    if (member.firing && context_.integration.enabled && visible && belongs && wanted(issue)) {
      verdict_.firing.push_back({&issue, issue.episode, true});
      log_.owed.erase(issue.key);  // the newer episode speaks for it
      return;
    }
    if (member.firing && knows(log_, issue)) {
      verdict_.suppressed.push_back({&issue, issue.episode, true});
      return;
    }
    if (const auto told = log_.told.find(issue.key); told != log_.told.end()) {
      settle(issue, told->second.episode, visible);
    } else if (const auto owed = log_.owed.find(issue.key); owed != log_.owed.end() && visible) {
      verdict_.resolved.push_back({&issue, owed->second.episode, false});
    }
  }

  /// Firing episodes among the visible that the log does not know.
  [[nodiscard]] bool has_news() const {
    return std::any_of(verdict_.firing.begin(), verdict_.firing.end(),
                       [&](const Mention& mention) { return !knows(log_, *mention.state); });
  }
  [[nodiscard]] bool has_escalated() const {
    return std::any_of(verdict_.firing.begin(), verdict_.firing.end(), [&](const Mention& mention) {
      const auto told = log_.told.find(mention.state->key);
      return told != log_.told.end() && mention.state->issue.severity > told->second.severity;
    });
  }

 private:
  [[nodiscard]] bool wanted(const IssueState& issue) const {
    return context_.filter == nullptr || context_.filter->matches(issue.issue.labels);
  }

  /// A told episode is over (the issue may fire again, unseen, in a later one).
  void settle(const IssueState& issue, std::uint64_t episode, bool visible) {
    if (!context_.integration.send_resolved || visible ||
        context_.integration.resolve_when_suppressed == ResolvePolicy::send) {
      verdict_.resolved.push_back({&issue, episode, false});
    } else if (context_.integration.resolve_when_suppressed == ResolvePolicy::defer) {
      log_.owed[issue.key] = {episode, context_.tick};
    }
  }

  const FlushContext& context_;
  TellLog& log_;
  Verdict& verdict_;
};

void drop_stale_debts(const FlushContext& context, TellLog& log, std::uint64_t& dropped) {
  for (auto at = log.owed.begin(); at != log.owed.end();) {
    const bool old = context.tick - at->second.since > context.owed_max_age;
    dropped += old ? 1 : 0;
    at = old ? log.owed.erase(at) : std::next(at);
  }
}

bool repeat_is_due(const FlushContext& context, const TellLog& log, const Verdict& verdict) {
  if (verdict.firing.empty() || !log.last_tick) return false;
  WallTime oldest = context.tick;
  for (const auto* list : {&verdict.firing, &verdict.suppressed}) {
    for (const Mention& mention : *list) oldest = std::min(oldest, mention.state->issue.starts_at);
  }
  return context.tick - *log.last_tick >= context.route.repeat_every(context.tick - oldest);
}

/// Resolves that stay owed after this flush: those not among the ones it would tell.
bool owes_more(const TellLog& log, const Verdict& verdict) {
  return std::any_of(log.owed.begin(), log.owed.end(), [&](const auto& owed) {
    return std::none_of(verdict.resolved.begin(), verdict.resolved.end(),
                        [&](const Mention& mention) { return mention.state->key == owed.first; });
  });
}

void choose(const FlushContext& context, const TellLog& log, const Sorter& sorter,
            Verdict& verdict) {
  const auto say = [&](std::string_view reason, NotificationKind kind) {
    verdict.reason = reason;
    verdict.kind = kind;
  };
  const bool tells_resolves = context.integration.send_resolved;
  if (log.told.empty() && !verdict.firing.empty()) {
    say("first", NotificationKind::open);
  } else if (sorter.has_news()) {
    say("new_issues", NotificationKind::update);
  } else if (!verdict.still_firing && !verdict.resolved.empty() && !owes_more(log, verdict)) {
    say("all_resolved", NotificationKind::close);
    if (!tells_resolves) verdict.kind.reset();
  } else if (tells_resolves && !verdict.resolved.empty()) {
    say("some_resolved", NotificationKind::update);
  } else if (sorter.has_escalated()) {
    say("severity_raised", NotificationKind::update);
  } else if (repeat_is_due(context, log, verdict)) {
    say("repeat", NotificationKind::repeat);
  }
}

void keep_books(const FlushContext& context, const Verdict& verdict, TellLog& log) {
  std::map<std::string, TellLog::Told> told;
  for (const auto* list : {&verdict.firing, &verdict.suppressed}) {
    for (const Mention& mention : *list) {
      const auto known = log.told.find(mention.state->key);
      const bool same = known != log.told.end() && known->second.episode == mention.episode;
      const bool shown = verdict.kind.has_value() && list == &verdict.firing;
      if (shown || !same) {
        told[mention.state->key] = {mention.episode, mention.state->issue.severity};
      } else {
        told[mention.state->key] = known->second;
      }
    }
  }
  log.told = std::move(told);
  for (const Mention& mention : verdict.resolved) log.owed.erase(mention.state->key);
  if (!verdict.kind) return;
  log.last_tick = context.tick;
  ++log.seq;
}

core::NotifiedIssue line(const Mention& mention) {
  core::NotifiedIssue out{mention.state->key, mention.episode, mention.state->issue};
  if (mention.firing) {
    out.issue.status = core::IssueStatus::firing;
    out.issue.resolution = core::Resolution::none;
    out.issue.ends_at.reset();
  } else if (mention.episode != mention.state->episode || mention.state->firing) {
    // Only its successor is still known: it ended before that one began.
    out.issue.status = core::IssueStatus::resolved;
    out.issue.resolution = core::Resolution::recovered;
    out.issue.ends_at = out.issue.starts_at;
  }
  return out;
}

std::vector<Mention> ordered(std::vector<Mention> mentions) {
  std::sort(mentions.begin(), mentions.end(), [](const Mention& a, const Mention& b) {
    const auto rank = [](const Mention& mention) {
      return std::make_tuple(-static_cast<int>(mention.state->issue.severity),
                             mention.state->issue.starts_at, std::string_view(mention.state->key),
                             mention.episode);
    };
    return rank(a) < rank(b);
  });
  return mentions;
}

core::Labels common_labels(const std::vector<Mention>& mentions) {
  core::Labels common;
  if (mentions.empty()) return common;
  for (const auto& [name, value] : mentions.front().state->issue.labels.entries()) {
    const bool shared = std::all_of(mentions.begin(), mentions.end(),
                                    [&, &label = name, &wanted = value](const Mention& one) {
                                      return one.state->issue.labels.get(label) == wanted;
                                    });
    if (shared) common.set(name, value);
  }
  return common;
}

}  // namespace

Verdict decide(const std::vector<FlushMember>& members, const FlushContext& context, TellLog& log,
               std::uint64_t& owed_dropped) {
  Verdict verdict;
  drop_stale_debts(context, log, owed_dropped);
  Sorter sorter(context, log, verdict);
  for (const FlushMember& member : members) sorter.add(member);
  verdict.still_firing = !verdict.firing.empty() || !verdict.suppressed.empty();
  choose(context, log, sorter, verdict);
  if (!context.integration.enabled) verdict.kind.reset();
  keep_books(context, verdict, log);
  return verdict;
}

core::Notification compose(const Group& group, const FlushContext& context, const Verdict& verdict,
                           const TellLog& log, WallTime now, const std::string& config_version) {
  const Integration& integration = context.integration;
  core::Notification out;
  out.notification_id = core::make_id(
      "ntf_",
      {integration.id, group.hash, std::to_string(group.generation), std::to_string(log.seq)});
  out.integration = integration.id;
  out.type = integration.type;
  out.receiver = integration.receiver;
  out.route_id = group.route_id;
  out.group_key = group.key;
  out.group_hash = group.hash;
  out.generation = group.generation;
  out.reason = verdict.reason;
  out.kind = *verdict.kind;
  out.firing = verdict.still_firing;
  out.group_labels = group.labels;
  std::vector<Mention> mentions = verdict.firing;
  if (integration.send_resolved) {
    mentions.insert(mentions.end(), verdict.resolved.begin(), verdict.resolved.end());
    out.resolved_count = verdict.resolved.size();
  }
  out.firing_count = verdict.firing.size();
  out.common_labels = common_labels(mentions);
  mentions = ordered(std::move(mentions));
  const std::size_t shown = integration.max_alerts == 0
                                ? mentions.size()
                                : std::min(mentions.size(), integration.max_alerts);
  out.truncated = mentions.size() - shown;
  for (std::size_t i = 0; i < shown; ++i) out.issues.push_back(line(mentions[i]));
  for (const Mention& mention : ordered(verdict.suppressed)) {
    out.suppressed.push_back(line(mention));
  }
  out.decided_at = now;
  const bool close = out.kind == NotificationKind::close;
  out.expires_at =
      now + (close ? std::max(integration.max_age, kCloseMaxAge) : integration.max_age);
  out.config_version = config_version;
  return out;
}

}  // namespace tocsin::routing
