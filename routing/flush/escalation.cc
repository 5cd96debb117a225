// Who is told beyond what issues ask for: the ladder of a route, backups for what does not arrive,
// and what became of acknowledgements (docs/escalation.md, docs/acknowledge.md).
#include <algorithm>
#include <set>
#include <string>

#include "core/visible_text.h"
#include "routing/flush/teller.h"

namespace tocsin::routing {

using core::Duration;
using core::WallTime;

namespace {

constexpr std::size_t kMostNamed = 3;

bool among(const std::vector<const Integration*>& list, const Integration& one) {
  return std::find(list.begin(), list.end(), &one) != list.end();
}

const TellLog* log_of(const Group& group, const Integration& integration) {
  const auto found = group.logs->find(integration.id);
  return found == group.logs->end() ? nullptr : &found->second;
}

bool is_told(const Group& group, const Integration& integration) {
  const TellLog* log = log_of(group, integration);
  return log != nullptr && !log->told.empty();
}

/// Has it something to hear: of the incident, or of an end that it could not be told?
bool hears(const Group& group, const Integration& integration) {
  const TellLog* log = log_of(group, integration);
  return log != nullptr && !(log->told.empty() && log->owed.empty());
}

/// Has the look at this time decided a message for it?
bool hears_now(const Group& group, const Integration& integration, WallTime at) {
  const TellLog* log = log_of(group, integration);
  return log != nullptr && !log->pending.empty() && log->pending.back().decided_at >= at;
}

/// What may be told to somebody on the route.
std::vector<const FlushMember*> visible(const std::vector<FlushMember>& members,
                                        const Route& route) {
  std::vector<const FlushMember*> out;
  for (const FlushMember& member : members) {
    if (!member.firing || member.over || member.held || member.strayed) continue;
    const bool seen = std::any_of(route.integrations.begin(), route.integrations.end(),
                                  [&](const Integration* one) {
                                    return one->purpose != Purpose::show && member.visible_to(*one);
                                  });
    if (seen) out.push_back(&member);
  }
  return out;
}

/// Has anybody been told of the incident who may hear of it further?
bool told_to_anybody(const Group& group) {
  const auto& all = group.route->further;
  return std::any_of(all.begin(), all.end(), [&](const Integration* one) {
    return one->purpose != Purpose::show && is_told(group, *one);
  });
}

/// A failure of which the backup has still to hear.
bool owes_a_backup(const Ladder& ladder) {
  return std::any_of(ladder.failed.begin(), ladder.failed.end(),
                     [](const auto& entry) { return !entry.second.told; });
}

bool all_taken_on(const std::vector<const FlushMember*>& members) {
  return !members.empty() && std::all_of(members.begin(), members.end(),
                                         [](const auto* one) { return one->ack != nullptr; });
}

std::string names_of(const std::vector<std::string>& receivers) {
  std::string out;
  for (std::size_t i = 0; i < receivers.size() && i < kMostNamed; ++i) {
    out += (i == 0 ? "" : ", ") + receivers[i];
  }
  if (receivers.size() > kMostNamed) {
    out += " and " + std::to_string(receivers.size() - kMostNamed) + " more";
  }
  return out;
}

/// Rounded to what people count in.
std::string for_people(Duration length) {
  using std::chrono::minutes;
  using std::chrono::seconds;
  if (length < minutes(5)) return core::to_text(std::chrono::floor<seconds>(length));
  return core::to_text(std::chrono::floor<minutes>(length));
}

std::string escalation_words(const Route& route, const EscalationStep& step, const DueStep& due,
                             Duration since, bool acked) {
  std::string out = due.nth == 0 ? "Escalated to " : "Escalated again to ";
  out += step.receiver;
  if (due.nth > 0) {
    out += " (repeat " + std::to_string(due.nth) + " of " + std::to_string(step.repeats) + ")";
  }
  out += acked ? ": acknowledged, but not resolved " : ": neither acknowledged nor resolved ";
  return out + for_people(since) + " after the first message to " + names_of(route.receivers) + ".";
}

/// Messages that tell of something; one that closes an incident is not stood in for.
const TellLog::Pending* oldest_pending(const TellLog& log) {
  const auto found = std::find_if(
      log.pending.begin(), log.pending.end(),
      [](const TellLog::Pending& one) { return one.kind != core::NotificationKind::close; });
  return found == log.pending.end() ? nullptr : &*found;
}

bool severe(const TellLog& log) {
  return std::any_of(log.told.begin(), log.told.end(), [](const auto& entry) {
    return entry.second.severity >= core::Severity::error;
  });
}

}  // namespace

void Teller::tell_all(const Look& look) {
  Group& group = look.group;
  const Route& route = *group.route;
  const auto fires = visible(look.members, *look.group.route);
  const Occasion found = occasion_of(look);
  const Occasion* occasion = found.reason.empty() ? nullptr : &found;
  // What is told now begins an incident: nothing of one before counts for it.
  const Ladder* before = ladders_.find(group.hash);
  if (before != nullptr && !told_to_anybody(group) && !owes_a_backup(*before)) {
    ladders_.end(group.hash);
  }
  for (const Integration* integration : route.integrations) tell(look, *integration, occasion);
  for (const Integration* integration : route.further) {
    if (among(route.integrations, *integration) || !hears(group, *integration)) continue;
    tell(look, *integration, occasion, true);
  }
  settle_occasion(look);
  tell_of_acks(look);
  if (!route.climbs()) return;
  if (!told_to_anybody(group)) return ladders_.end(group.hash);
  if (ladders_.find(group.hash) == nullptr) ladders_.begin(group.hash, look.tick);
  std::optional<WallTime> paused;
  if (all_taken_on(fires)) {
    for (const FlushMember* one : fires) {
      const AckState* ack = acks_.of(*one->state);
      paused = std::max(paused.value_or(ack->taken_at), ack->taken_at);
    }
  }
  ladders_.pause(group.hash, paused, look.at());
  if (fires.empty()) return;  // nobody may be told now: what is due waits
  escalate(look);
  note_undelivered(look);
  stand_in(look);
}

/// What everybody who was told has to hear beside the news; empty: nothing.
Occasion Teller::occasion_of(const Look& look) const {
  const Acks::News acks = acks_.news(look.group);
  if (acks.expired != nullptr) {
    return {"ack_expired",
            "The acknowledgement by " + core::visible(acks.expired->told.by, 100) +
                " has ended, and the issue still fires.",
            false, true};
  }
  const Route& route = *look.group.route;
  if (!route.flap) return {};
  for (const FlushMember& member : look.members) {
    const IssueState& issue = *member.state;
    const FlapState* flap = flaps_.of(issue.key);
    if (flap == nullptr) continue;
    const std::string what = core::visible(issue.issue.rule(), 100);
    if (member.flapping && !member.held && flaps_.untold(issue.key, look.group.hash)) {
      return {"flapping",
              what + " flaps: it began " + std::to_string(route.flap->episodes) + " times within " +
                  core::to_text(route.flap->within) +
                  ". You hear of its end when nothing has "
                  "happened for " +
                  core::to_text(route.flap->hold) + ".",
              false, true};
    }
    if (flaps_.calmed(issue, route, look.at())) {
      return {"calm",
              what + " flaps no more: nothing has happened to it for " +
                  core::to_text(route.flap->hold) + ", after " + std::to_string(issue.episode) +
                  " episodes in all.",
              false, true};
    }
  }
  return {};
}

void Teller::settle_occasion(const Look& look) {
  Group& group = look.group;
  acks_.told(group, true);
  if (!group.route->flap) return;
  for (const FlushMember& member : look.members) {
    const IssueState& issue = *member.state;
    if (member.flapping && !member.held) flaps_.told(issue.key, group.hash);
    if (flaps_.calmed(issue, *group.route, look.at())) flaps_.calm(issue.key, group.route_id);
  }
}

void Teller::escalate(const Look& look) {
  const Route& route = *look.group.route;
  const auto due = ladders_.climb(look.group.hash, route, look.at());
  if (!due) return;
  const EscalationStep& step = route.escalation[due->index];
  const Ladder& ladder = *ladders_.find(look.group.hash);
  const bool acked = ladder.paused_since.has_value();
  const Occasion occasion{
      "escalation", escalation_words(route, step, *due, look.at() - ladder.since, acked), true};
  for (const Integration* integration : tree_.integrations_of(step.receiver)) {
    // Who hears news of the incident in this second is not told the same a second time.
    if (hears_now(look.group, *integration, look.at())) continue;
    tell(look, *integration, &occasion, !among(route.integrations, *integration));
  }
  further_.push_back({route.id, step.receiver, due->index, {}});
}

/// When its oldest message has waited for too long; nullopt: nobody stands in for it, or nothing waits.
std::optional<WallTime> Teller::undelivered_at(const Group& group,
                                               const Integration& integration) const {
  const TellLog* log = log_of(group, integration);
  if (log == nullptr) return std::nullopt;
  const TellLog::Pending* oldest = oldest_pending(*log);
  if (oldest == nullptr) return std::nullopt;
  const WallTime since = std::max(oldest->decided_at, started_);
  const Route& route = *group.route;
  std::optional<WallTime> out;
  if (!integration.fallback.empty() && severe(*log)) out = since + integration.fallback_after;
  if (route.on_failure && among(route.integrations, integration)) {
    const WallTime at = since + route.on_failure->after;
    if (!out || at < *out) out = at;
  }
  return out;
}

void Teller::note_undelivered(const Look& look) {
  for (const Integration* integration : look.group.route->further) {
    const auto at = undelivered_at(look.group, *integration);
    if (!at || *at > look.at()) continue;
    const WallTime since =
        std::max(oldest_pending(*log_of(look.group, *integration))->decided_at, started_);
    ladders_.failed(look.group.hash, integration->id,
                    "has not got this message for " + for_people(look.at() - since));
  }
}

void Teller::stand_in(const Look& look) {
  Ladder* ladder = ladders_.find(look.group.hash);
  if (ladder == nullptr) return;
  const Route& route = *look.group.route;
  for (auto& [id, failed] : ladder->failed) {
    if (failed.told) continue;
    failed.told = true;
    ladders_.touch(look.group.hash);
    const Integration* broken = tree_.find_integration(id);
    if (broken == nullptr || !among(route.further, *broken)) continue;
    std::set<std::string> backups;
    if (!broken->fallback.empty()) backups.insert(broken->fallback);
    if (route.on_failure && among(route.integrations, *broken)) {
      backups.insert(route.on_failure->receiver);
    }
    for (const std::string& receiver : backups) {
      const Occasion occasion{
          "fallback", "Sent to " + receiver + " because " + id + " " + failed.what + ".", true};
      for (const Integration* integration : tree_.integrations_of(receiver)) {
        tell(look, *integration, &occasion, !among(route.integrations, *integration));
      }
      further_.push_back({route.id, receiver, std::nullopt, id});
    }
  }
}

/// An acknowledgement is passed on to tools that know one, but not to the one that it came from, and
/// not while anything fires that nobody has taken on.
void Teller::tell_of_acks(const Look& look) {
  Group& group = look.group;
  const AckState* ack = acks_.news(group).taken;
  if (ack == nullptr) return;
  const auto fires = visible(look.members, *look.group.route);
  const Occasion occasion{"acknowledged",
                          "Acknowledged by " + core::visible(ack->told.by, 100) + ".", false};
  if (all_taken_on(fires)) {
    // What this very look opens may never arrive: the acknowledgement follows it at the next look.
    const auto takes_it = [&](const Integration* integration) {
      return integration->acknowledges && integration->id != ack->origin;
    };
    const auto opens_now = [&](const Integration* integration) {
      return takes_it(integration) && hears_now(group, *integration, look.at()) &&
             !log_of(group, *integration)->placed;
    };
    const auto& told = group.route->integrations;
    if (std::any_of(told.begin(), told.end(), opens_now)) return;
    for (const Integration* integration : told) {
      if (takes_it(integration) && is_told(group, *integration))
        tell(look, *integration, &occasion);
    }
  }
  acks_.told(group, false);
}

bool Teller::asks_for_more(const Group& group, WallTime until) const {
  const Acks::News acks = acks_.news(group);
  if (acks.taken != nullptr || acks.expired != nullptr || flaps_.any(group)) return true;
  const Ladder* ladder = ladders_.find(group.hash);
  if (ladder == nullptr) return false;
  if (ladders_.due(group.hash, *group.route, until)) return true;
  if (owes_a_backup(*ladder)) return true;
  return std::any_of(group.route->further.begin(), group.route->further.end(),
                     [&](const Integration* one) {
                       const auto at = undelivered_at(group, *one);
                       return at && *at <= until && !ladder->failed.contains(one->id);
                     });
}

void Teller::arrange(Group& group, WallTime now) {
  const Ladder* ladder = ladders_.find(group.hash);
  if (ladder == nullptr || !group.active()) return;
  std::optional<WallTime> next = ladders_.next(group.hash, *group.route, now);
  for (const Integration* integration : group.route->further) {
    if (ladder->failed.contains(integration->id)) continue;
    const auto at = undelivered_at(group, *integration);
    if (at && *at > now && (!next || *at < *next)) next = at;
  }
  if (next) turns_.pull(group, *next);
}

}  // namespace tocsin::routing
