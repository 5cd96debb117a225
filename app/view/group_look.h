// One group of the router, and why it says nothing at the moment.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "app/view/held_back.h"
#include "app/view/topic_view.h"
#include "core/time.h"
#include "core/value.h"
#include "routing/routing.h"

namespace tocsin::app {

struct GroupWait {
  std::string reason;  // catch_up, group_wait, group_interval, silence, repeat_interval, …
  std::string text;    // one sentence, with names and times
};

struct GroupMember {
  std::string key;
  const TopicView::SeenIssue* seen = nullptr;  // null: no topic has it, as with the router's own
  HeldBack held;
};

struct GroupLook {
  routing::GroupStanding group;
  std::optional<core::WallTime> next;  // look; nullopt: without members, or not known
  std::vector<GroupMember> members;    // by key
  std::vector<GroupWait> waits;        // all reasons
};

/// `view` outlives the answer; `held` and `sight` belong to it.
GroupLook look_at_group(routing::GroupStanding group, const TopicView& view,
                        const HeldBackView& held, const RoutingSight& sight, core::WallTime now);

/// Does it hold an issue that goes by this id, or has it still to tell of one?
bool has_issue(const GroupLook& look, const TopicView& view, const std::string& id);

/// The fields of group_value(), with `next_look`, `waits`, and the members as `members` if they are
/// asked for.
core::Value group_look_value(const GroupLook& look, bool with_members);

}  // namespace tocsin::app
