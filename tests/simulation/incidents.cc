#include "tests/simulation/incidents.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "ingest/ingest.h"
#include "routing/tables/state_codec.h"
#include "tests/simulation/broker_log.h"

namespace tocsin::simulation {
namespace {

using core::Notification;
using core::NotificationKind;
using namespace std::chrono_literals;

/// A router that is down, or behind, reads an acknowledgement late.
constexpr core::Duration kReadByThen = 3min;

std::vector<Notification> told(World& world) {
  std::vector<Notification> out;
  for (const auto& stored : world.broker().records("router-outbox")) {
    auto one = ingest::decode_notification(view_of(stored));
    if (one && one->type != "stop_training") out.push_back(std::move(*one));
  }
  return out;
}

/// Does it fire, or did it end so short a time ago that its group may not have been looked at since?
bool fires(const core::OutRecord& record, World& world) {
  if (!record.value) return false;
  const auto state = routing::decode_issue_state(*record.value);
  return state && (state->firing || state->last_transition + 1min > world.now());
}

/// Keys of the issues that fire as far as the router knows, or did a moment ago.
std::set<std::string> firing(World& world) {
  constexpr std::string_view kIssue = "issue/";
  std::set<std::string> out;
  for (const auto& stored : world.broker().records("router-state")) {
    if (!stored.record.key.starts_with(kIssue)) continue;
    const std::string key = stored.record.key.substr(kIssue.size());
    out.erase(key);
    if (fires(stored.record, world)) out.insert(key);
  }
  return out;
}

/// Ids of messages that reached their far side.
std::set<std::string> delivered(World& world) {
  std::set<std::string> out;
  for (const auto& stored : world.broker().records("router-deliveries")) {
    const auto one = ingest::decode_delivery(view_of(stored));
    if (one && one->state == core::DeliveryState::delivered) out.insert(one->notification_id);
  }
  return out;
}

class IncidentChecker {
 public:
  explicit IncidentChecker(World& world) : world_(world), told_(told(world)) {}

  std::vector<std::string> run() {
    opens_and_closes();
    steps();
    repeats();
    storms();
    silences();
    return std::move(problems_);
  }

 private:
  /// Of who keeps incidents open: what is opened is closed, unless something in it still fires.
  void opens_and_closes() {
    std::map<std::string, std::vector<const Notification*>> open;
    for (const Notification& one : told_) {
      const std::string place = one.integration + " " + one.group_hash;
      if (one.kind == NotificationKind::close) {
        if (open.erase(place) == 0 && never_failed()) wrong(one, "closes what is not open");
        if (one.firing) wrong(one, "closes what it says still fires");
      } else {
        if (one.kind == NotificationKind::open && open.contains(place) && never_failed()) {
          wrong(one, "opens what is open");
        }
        open[place].push_back(&one);
      }
      for (const auto& line : one.issues) {
        const bool over = line.issue.status == core::IssueStatus::resolved;
        if (over && line.acknowledged) wrong(one, "says who has taken on what is over");
      }
    }
    const auto fires = firing(world_);
    const auto arrived = delivered(world_);
    for (const auto& [place, messages] : open) {
      // Of which nothing has arrived is not open there.
      const Notification* last = messages.back();
      if (std::none_of(messages.begin(), messages.end(), [&](const Notification* one) {
            return arrived.contains(one->notification_id);
          })) {
        continue;
      }
      // The last message leaves out what was silenced just then.
      const bool some =
          std::any_of(messages.begin(), messages.end(), [&](const Notification* told) {
            return std::any_of(told->issues.begin(), told->issues.end(),
                               [&](const auto& one) { return fires.contains(one.issue_key); });
          });
      const bool owed = std::any_of(last->issues.begin(), last->issues.end(), [&](const auto& one) {
        return is_silent(one.issue, world_.now());
      });
      if (!some && !owed && last->truncated == 0)
        wrong(*last, "was never closed, and nothing of it fires");
    }
  }

  /// What a far side has refused for good may be opened again, and closed again: a close that was refused
  /// has closed nothing.
  [[nodiscard]] bool never_failed() const { return world_.scenario().faults.gone == 0; }

  /// Within an incident each step comes once, and as often more as it may be repeated.
  void steps() {
    std::map<std::string, std::uint32_t> times;
    std::map<std::string, std::uint32_t> most;
    for (const auto* route : routes()) {
      for (const auto& step :
           route->further.steps.value_or(std::vector<routing::EscalationStep>())) {
        most[step.receiver] = std::max(most[step.receiver], 1 + step.repeats);
      }
    }
    for (const Notification& one : told_) {
      if (one.reason != "escalation") continue;
      if (one.why.empty()) wrong(one, "does not say why it escalates");
      // One that opens begins an incident there; what is open must not be opened again.
      std::uint32_t& count = times[one.group_hash + " " + one.integration];
      count = one.kind == NotificationKind::open ? 1 : count + 1;
      if (count > most[one.receiver]) wrong(one, "climbs a step again");
    }
  }

  [[nodiscard]] std::vector<const routing::RouteConfig*> routes() const {
    std::vector<const routing::RouteConfig*> out{&world_.scenario().route};
    for (const auto& one : world_.scenario().other_routes) out.push_back(&one);
    return out;
  }

  /// A repeat has something that nobody has taken on.
  void repeats() {
    for (const Notification& one : told_) {
      if (one.kind != NotificationKind::repeat) continue;
      if (std::all_of(one.issues.begin(), one.issues.end(),
                      [](const auto& line) { return line.acknowledged.has_value(); })) {
        wrong(one, "repeats what all is acknowledged");
      }
      // Where the wall clock runs as it should, the times themselves say so.
      if (world_.scenario().faults.clock_jump > 0 || one.truncated > 0) continue;
      if (std::all_of(one.issues.begin(), one.issues.end(),
                      [&](const auto& line) { return taken_on(line, one.decided_at); })) {
        wrong(one, "repeats what people have acknowledged long before");
      }
    }
  }

  /// A group repeats at its interval, whatever the clock says. A jump, and a restart behind one, may
  /// make one repeat due at once.
  void storms() {
    const auto& faults = world_.trace().faults();
    std::int64_t most = 2;
    for (const auto& [kind, number] : faults) {
      if (kind.starts_with("clock_")) most += static_cast<std::int64_t>(number);
    }
    core::Duration every = std::chrono::hours(4);
    for (const auto* route : routes()) {
      for (const auto& step : route->repeat_interval.value_or(std::vector<routing::RepeatStep>())) {
        every = std::min(every, step.every);
      }
    }
    most += world_.trace().elapsed() * 21 / (every * 20);  // its clock is put right by 1 in 100
    std::map<std::string, std::int64_t> repeated;
    for (const Notification& one : told_) {
      if (one.kind != NotificationKind::repeat || one.reason == "escalation") continue;
      if (++repeated[one.integration + " " + one.group_hash] == most + 1) {
        wrong(one, "is repeated more than " + std::to_string(most) + " times, every " +
                       core::to_text(every));
      }
    }
  }

  /// In force then, or a moment before: who hears late that it is over says it late.
  [[nodiscard]] bool is_silent(const core::Issue& issue, core::WallTime at) const {
    const auto& all = world_.silencers().silences();
    return std::any_of(all.begin(), all.end(), [&](const Silenced& one) {
      return one.holds(issue, at) || one.holds(issue, at - std::chrono::minutes(1));
    });
  }

  /// When nothing goes wrong any more, a message is about something that no silence holds back.
  void silences() {
    if (world_.scenario().faults.clock_jump > 0 || world_.scenario().faults.clock_hour > 0) return;
    const core::WallTime heard = world_.calm_since() + std::chrono::minutes(1);
    for (const Notification& one : told_) {
      if (one.kind == NotificationKind::close || one.truncated > 0 || one.decided_at < heard)
        continue;
      const bool held = std::all_of(one.issues.begin(), one.issues.end(), [&](const auto& line) {
        const auto& all = world_.silencers().silences();
        return line.issue.status == core::IssueStatus::firing &&
               std::any_of(all.begin(), all.end(), [&](const Silenced& silence) {
                 return silence.holds(line.issue, one.decided_at) &&
                        silence.holds(line.issue, heard - std::chrono::minutes(1));
               });
      });
      if (held && !one.issues.empty()) wrong(one, "tells what people have silenced");
    }
  }

  [[nodiscard]] bool taken_on(const core::NotifiedIssue& line, core::WallTime at) const {
    const auto& all = world_.people().acknowledgements();
    return std::any_of(all.begin(), all.end(), [&](const TakenOn& one) {
      const auto episode = one.episodes.find(line.issue_key);
      return !one.taken_back && episode != one.episodes.end() && episode->second == line.episode &&
             one.at + kReadByThen < at;
    });
  }

  void wrong(const Notification& one, const std::string& what) {
    problems_.push_back(one.notification_id + " (" + one.reason + ", " +
                        std::string(core::to_string(one.kind)) + ", " + one.integration + ", " +
                        one.group_key + ") " + what);
  }

  World& world_;
  std::vector<Notification> told_;
  std::vector<std::string> problems_;
};

}  // namespace

std::vector<std::string> incident_problems(World& world) { return IncidentChecker(world).run(); }

}  // namespace tocsin::simulation
