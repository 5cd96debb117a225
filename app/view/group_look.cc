#include "app/view/group_look.h"

#include <algorithm>
#include <utility>

#include "app/view/router_reading.h"
#include "app/view/view_words.h"
#include "core/visible_text.h"

namespace tocsin::app {
namespace {

using core::WallTime;

// What the tree says of the group's route now; a group may be older than the configuration.
struct RouteTimes {
  std::optional<core::Duration> interval;
  std::string wait_text, interval_text, repeat_text;  // as a configuration would have them
};

RouteTimes times_of(const std::string& route_id, const std::vector<GroupMember>& members,
                    const routing::Router* router) {
  RouteTimes out;
  if (router == nullptr) return out;
  for (const auto& route : router->routes()) {
    if (route.id != route_id) continue;
    for (const auto& setting : route.settings) {
      if (setting.name == "group_wait") out.wait_text = setting.value;
      if (setting.name == "group_interval") out.interval_text = setting.value;
      if (setting.name == "repeat_interval") out.repeat_text = setting.value;
    }
  }
  for (const GroupMember& member : members) {
    if (member.seen == nullptr) continue;
    for (const auto& leaf : router->explain(member.seen->newest.labels).leaves) {
      if (leaf.route_id == route_id) out.interval = leaf.group_interval;
    }
    if (out.interval) break;
  }
  return out;
}

// A look that changed nothing is not written: what was written goes on by whole intervals.
std::optional<WallTime> next_look(const routing::GroupStanding& group, const RouteTimes& times,
                                  WallTime now) {
  if (!group.next_flush || *group.next_flush > now) return group.next_flush;
  if (!group.last_flush || !times.interval || *times.interval <= core::Duration{})
    return std::nullopt;
  const auto missed = (now - *group.next_flush) / *times.interval + 1;
  return *group.next_flush + missed * *times.interval;
}

std::string in_brackets(const std::string& text) { return text.empty() ? "" : " (" + text + ")"; }

void add_timer(GroupLook& look, const RouteTimes& times, WallTime now) {
  const routing::GroupStanding& group = look.group;
  if (group.held) {
    look.waits.push_back({"catch_up", "the router first reads its backlog to the end"});
    return;
  }
  if (!group.next_flush) {
    look.waits.push_back({"no_issues", "no issue is left; kept until all ends are told"});
    return;
  }
  if (!group.last_flush && *group.next_flush <= now) {
    look.waits.push_back({"overdue", "the first look was due " + ago(*group.next_flush, now) +
                                         "; does a router run? tocsin status"});
    return;
  }
  if (!group.last_flush) {
    look.waits.push_back(
        {"group_wait", "the first message comes after group_wait" + in_brackets(times.wait_text)});
    return;
  }
  look.waits.push_back({"group_interval", "the group is looked at every group_interval" +
                                              in_brackets(times.interval_text)});
}

void add_muted(GroupLook& look, const routing::Router* router, WallTime now) {
  if (router == nullptr || look.members.empty()) return;
  for (const std::string& why : router->muted_by(look.group.route_id, now)) {
    const std::size_t colon = std::min(why.find(':'), why.size());
    const std::string name = core::visible(why.substr(std::min(colon + 1, why.size())), 100);
    look.waits.push_back(
        {why.substr(0, colon), why.starts_with("mute_time")
                                   ? "time interval " + name + " mutes the route"
                                   : "the route tells only in time interval " + name});
  }
}

// "2 of 3 issues are silenced by 3f9a, 77b1"
template <typename NamesOf>
void add_held(GroupLook& look, const std::string& reason, const std::string& done_by,
              NamesOf names_of) {
  std::size_t issues = 0;
  std::vector<std::string> by;
  for (const GroupMember& member : look.members) {
    const std::vector<std::string> names = names_of(member.held);
    issues += names.empty() ? 0 : 1;
    for (const std::string& name : names) {
      if (std::find(by.begin(), by.end(), name) == by.end()) by.push_back(name);
    }
  }
  if (issues == 0) return;
  constexpr std::size_t kNamed = 5;
  std::string text = std::to_string(issues) + " of " + std::to_string(look.members.size()) +
                     (look.members.size() == 1 ? " issue is " : " issues are ") + done_by;
  for (std::size_t i = 0; i < std::min(by.size(), kNamed); ++i)
    text += (i == 0 ? " " : ", ") + core::visible(by[i], 100);
  if (by.size() > kNamed) text += " and " + std::to_string(by.size() - kNamed) + " more";
  look.waits.push_back({reason, std::move(text)});
}

void add_suppression(GroupLook& look) {
  using Names = std::vector<std::string>;
  add_held(look, "silence", "silenced by", [](const HeldBack& held) {
    Names out;
    out.reserve(held.silences.size());
    for (const auto& one : held.silences) out.push_back(short_id(one.id));
    return out;
  });
  add_held(look, "inhibition", "inhibited by rule", [](const HeldBack& held) {
    Names out;
    out.reserve(held.inhibitors.size());
    for (const auto& one : held.inhibitors) out.push_back(one.rule);
    return out;
  });
  add_held(look, "ack", "not repeated: acknowledged by",
           [](const HeldBack& held) { return held.ack ? Names{held.ack->by} : Names{}; });
  add_held(look, "flapping", "flapping: ends are held back, since", [](const HeldBack& held) {
    return held.flapping_since ? Names{core::to_rfc3339(*held.flapping_since)} : Names{};
  });
}

// Whom nothing new waits for, and whose messages are under way.
void add_told(GroupLook& look, const RouteTimes& times, WallTime now) {
  std::string told;
  for (const auto& one : look.group.integrations) {
    const std::string name = core::visible(one.integration, 80);
    if (!one.waiting.empty()) {
      look.waits.push_back({"delivery", std::to_string(one.waiting.size()) +
                                            (one.waiting.size() == 1 ? " message" : " messages") +
                                            " to " + name + " on the way, the oldest decided " +
                                            ago(one.waiting.front().decided_at, now) +
                                            "; see: tocsin history --integration " + name});
      continue;
    }
    const bool knows_all =
        !look.members.empty() &&
        std::all_of(look.members.begin(), look.members.end(), [&](const GroupMember& member) {
          return std::any_of(one.told.begin(), one.told.end(),
                             [&](const auto& entry) { return entry.issue_key == member.key; });
        });
    if (knows_all) told += (told.empty() ? "" : ", ") + name;
  }
  if (told.empty()) return;
  look.waits.push_back({"repeat_interval", "nothing is new to " + told +
                                               "; it is told again after repeat_interval" +
                                               in_brackets(times.repeat_text)});
}

core::Value time_value(const std::optional<WallTime>& time) {
  return time ? core::Value(core::to_rfc3339(*time)) : core::Value();
}

}  // namespace

GroupLook look_at_group(routing::GroupStanding group, const TopicView& view,
                        const HeldBackView& held, const RoutingSight& sight, WallTime now) {
  GroupLook out;
  out.group = std::move(group);
  for (const std::string& key : out.group.members) {
    GroupMember member{key, nullptr, {}};
    if (const auto found = view.issues().find(key); found != view.issues().end()) {
      member.seen = &found->second;
      member.held = held.of(view, key, found->second);
    }
    out.members.push_back(std::move(member));
  }
  const RouteTimes times = times_of(out.group.route_id, out.members, sight.router);
  out.next = next_look(out.group, times, now);
  add_timer(out, times, now);
  add_muted(out, sight.router, now);
  add_suppression(out);
  add_told(out, times, now);
  return out;
}

bool has_issue(const GroupLook& look, const TopicView& view, const std::string& id) {
  const auto is_it = [&](const std::string& key) {
    const auto found = view.issues().find(key);
    return found == view.issues().end() ? key.starts_with(id)
                                        : goes_by(key, found->second.newest, id);
  };
  if (std::any_of(look.group.members.begin(), look.group.members.end(), is_it)) return true;
  const auto about_it = [&](const auto& entry) { return is_it(entry.issue_key); };
  return std::any_of(look.group.integrations.begin(), look.group.integrations.end(),
                     [&](const auto& one) {
                       return std::any_of(one.told.begin(), one.told.end(), about_it) ||
                              std::any_of(one.owed.begin(), one.owed.end(), about_it);
                     });
}

core::Value group_look_value(const GroupLook& look, bool with_members) {
  const core::Value group = group_value(look.group);
  core::ValueMap out = *core::as<core::ValueMap>(group);
  core::ValueList waits;
  waits.reserve(look.waits.size());
  for (const GroupWait& wait : look.waits)
    waits.push_back(core::ValueMap{{"reason", wait.reason}, {"text", wait.text}});
  out.emplace_back("next_look", time_value(look.next));
  out.emplace_back("waits", std::move(waits));
  if (!with_members) return out;
  core::ValueList members;
  for (const GroupMember& member : look.members) {
    if (member.seen == nullptr) {
      members.push_back(core::ValueMap{{"key", member.key}});
    } else {
      core::ValueMap one{{"key", member.key}};
      for (auto& field : issue_with_held_back(member.seen->newest, member.held))
        one.push_back(std::move(field));
      members.push_back(std::move(one));
    }
  }
  out.emplace_back("members", std::move(members));
  return out;
}

}  // namespace tocsin::app
