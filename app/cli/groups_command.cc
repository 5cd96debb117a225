#include "app/cli/groups_command.h"

#include <algorithm>
#include <iostream>
#include <limits>
#include <utility>
#include <vector>

#include "app/cli/looking.h"
#include "app/cli/routing_knowledge.h"
#include "app/process/exit_code.h"
#include "app/view/group_look.h"
#include "app/view/group_text.h"
#include "app/view/topic_view.h"
#include "core/json.h"
#include "core/system_clock.h"
#include "core/visible_text.h"

namespace tocsin::app {
namespace {

using namespace std::chrono_literals;

constexpr auto kGroupPatience = 60s;

// The topics and the router's state, read once.
struct GroupSight {
  Looking looking;
  TopicView view;
  RoutingKnowledge routing;
  core::WallTime now;
};

// kOk, or why nothing is seen, which was said.
int look_at_groups(const GroupsOptions& options, GroupSight& sight) {
  if (auto opened = sight.looking.open(options.config_file, options.out); !opened)
    return refuse(opened.error());
  auto& transport = sight.looking.transport();
  if (const auto read = read_view(transport, sight.view, kGroupPatience); !read)
    return refuse(read.error());
  sight.routing.read_config(options.config_file);
  if (const auto read = sight.routing.read_state(transport); !read) return refuse(read.error());
  sight.now = core::SystemClock().now();
  return kOk;
}

bool has_integration(const routing::GroupStanding& group, const std::string& name) {
  return std::any_of(group.integrations.begin(), group.integrations.end(), [&](const auto& one) {
    return one.integration == name || one.integration.starts_with(name + "/");
  });
}

// Those with the next look first; without one last.
bool is_sooner(const GroupLook& a, const GroupLook& b) {
  if (a.next.has_value() != b.next.has_value()) return a.next.has_value();
  return std::tie(a.next, a.group.key, a.group.hash) < std::tie(b.next, b.group.key, b.group.hash);
}

std::vector<GroupLook> chosen_groups(const GroupsOptions& options, const GroupSight& sight) {
  const RoutingSight known = sight.routing.sight();
  const HeldBackView held(sight.view, known, sight.now);
  std::vector<GroupLook> out;
  for (auto& group : sight.routing.standing()->groups()) {
    if (!options.route.empty() && group.route_id != options.route) continue;
    if (!options.integration.empty() && !has_integration(group, options.integration)) continue;
    GroupLook look = look_at_group(std::move(group), sight.view, held, known, sight.now);
    if (options.issue.empty() || has_issue(look, sight.view, options.issue))
      out.push_back(std::move(look));
  }
  std::sort(out.begin(), out.end(), is_sooner);
  return out;
}

}  // namespace

int groups_list(const GroupsOptions& options) {
  GroupSight sight;
  if (const int code = look_at_groups(options, sight); code != kOk) return code;
  const std::vector<GroupLook> found = chosen_groups(options, sight);
  if (options.json) {
    core::ValueList list;
    list.reserve(found.size());
    for (const GroupLook& look : found) list.push_back(group_look_value(look, false));
    std::cout << core::to_json(core::Value(std::move(list))) << "\n";
    return kOk;
  }
  const bool filtered =
      !(options.route.empty() && options.integration.empty() && options.issue.empty());
  std::cout << (found.empty() ? (filtered ? "no such group\n" : "no groups: no issue is routed\n")
                              : groups_text(found, sight.now));
  return kOk;
}

int groups_show(const GroupsOptions& options) {
  GroupSight sight;
  if (const int code = look_at_groups(options, sight); code != kOk) return code;
  auto group = sight.routing.standing()->find(options.hash);
  if (!group) {
    std::cerr << "tocsin: no group, or more than one, has a hash that begins with \""
              << core::visible(options.hash, 100) << "\"; see: tocsin groups list\n";
    return kFailed;
  }
  const RoutingSight known = sight.routing.sight();
  const GroupLook look = look_at_group(
      std::move(*group), sight.view, HeldBackView(sight.view, known, sight.now), known, sight.now);
  std::cout << (options.json ? core::to_json(group_look_value(look, true)) + "\n"
                             : group_text(look, sight.view, sight.now));
  return kOk;
}

}  // namespace tocsin::app
