#include "app/view/group_text.h"

#include <algorithm>
#include <vector>

#include "app/view/view_words.h"
#include "core/text_table.h"
#include "core/visible_text.h"

namespace tocsin::app {
namespace {

using core::TableRow;
using core::visible;
using core::WallTime;

constexpr std::size_t kMostOfAName = 80;
constexpr std::size_t kMostListed = 20;  // issues in one cell

// "in 35 s"
std::string in_time(const std::optional<WallTime>& then, WallTime now) {
  if (!then) return "-";
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(*then - now).count();
  if (seconds < 120) return "in " + std::to_string(std::max<std::int64_t>(0, seconds)) + " s";
  if (seconds < 7200) return "in " + std::to_string(seconds / 60) + " min";
  return "in " + std::to_string(seconds / 3600) + " h";
}

// Who knows of an open incident.
std::string told_names(const routing::GroupStanding& group) {
  std::string out;
  for (const auto& one : group.integrations) {
    if (!one.incident_open && one.told.empty()) continue;
    out += (out.empty() ? "" : ", ") + visible(one.integration, kMostOfAName);
  }
  return out.empty() ? "nobody" : out;
}

std::string wait_names(const std::vector<GroupWait>& waits) {
  std::vector<std::string> names;
  for (const GroupWait& wait : waits) {
    if (std::find(names.begin(), names.end(), wait.reason) == names.end())
      names.push_back(wait.reason);
  }
  std::string out;
  for (const std::string& name : names) out += (out.empty() ? "" : ", ") + name;
  return out.empty() ? "-" : out;
}

std::string name_of(const std::string& key, const TopicView& view) {
  const auto found = view.issues().find(key);
  return found == view.issues().end() ? short_id(key)
                                      : short_id(core::fingerprint(found->second.newest.labels));
}

// "207f21eb06, 3fa9c21b11 (on its way)"
std::string told_issues_text(const routing::IntegrationStanding& one, const TopicView& view) {
  std::string out;
  for (std::size_t i = 0; i < std::min(one.told.size(), kMostListed); ++i) {
    out += (i == 0 ? "" : ", ") + name_of(one.told[i].issue_key, view);
    if (!one.told[i].arrived) out += " (on its way)";
  }
  if (one.told.size() > kMostListed)
    out += " and " + std::to_string(one.told.size() - kMostListed) + " more";
  return out.empty() ? "none" : out;
}

std::string members_text(const GroupLook& look, WallTime now) {
  std::vector<TableRow> rows{{"ISSUE", "SEVERITY", "RULE", "JOB", "SINCE", "WHAT"}};
  for (const GroupMember& member : look.members) {
    if (member.seen == nullptr) {
      rows.push_back({short_id(member.key), "-", "-", "-", "-",
                      "of the router itself: no topic of issues has it"});
      continue;
    }
    const core::Issue& issue = member.seen->newest;
    const bool fires = issue.status == core::IssueStatus::firing;
    rows.push_back(
        {short_id(core::fingerprint(issue.labels)), std::string(core::to_string(issue.severity)),
         visible(issue.rule, kMostOfAName), visible(issue.run.job, kMostOfAName),
         ago(member.seen->since, now),
         (fires ? held_back_marks(member.held) : "resolved: ") + visible(issue.summary)});
  }
  return look.members.empty() ? "" : "\n" + core::text_table(rows);
}

std::string integrations_text(const GroupLook& look, const TopicView& view, WallTime now) {
  std::vector<TableRow> rows{
      {"INTEGRATION", "INCIDENT", "MESSAGES", "LAST DECIDED", "ENDS OWED", "ISSUES TOLD"}};
  for (const auto& one : look.group.integrations) {
    rows.push_back({visible(one.integration, kMostOfAName), one.incident_open ? "open" : "closed",
                    std::to_string(one.messages),
                    one.last_message_at ? ago(*one.last_message_at, now) : "never",
                    std::to_string(one.owed.size()), told_issues_text(one, view)});
  }
  return look.group.integrations.empty() ? "\nnobody was told yet\n"
                                         : "\n" + core::text_table(rows);
}

}  // namespace

std::string groups_text(std::span<const GroupLook> looks, WallTime now) {
  std::vector<TableRow> rows{{"HASH", "ISSUES", "NEXT LOOK", "WAITS FOR", "TOLD", "GROUP"}};
  for (const GroupLook& look : looks) {
    rows.push_back({short_id(look.group.hash), std::to_string(look.members.size()),
                    in_time(look.next, now), wait_names(look.waits), told_names(look.group),
                    visible(look.group.key) + (look.group.overflow ? " (overflow)" : "")});
  }
  return core::text_table(rows);
}

std::string group_text(const GroupLook& look, const TopicView& view, WallTime now) {
  const routing::GroupStanding& group = look.group;
  std::vector<TableRow> rows{
      {"hash", group.hash},
      {"route", visible(group.route_id) + "; see: tocsin routes tree"},
      {"opened", core::to_rfc3339(group.created_at) + ", " + ago(group.created_at, now)},
      {"incident", std::to_string(group.generation)}};
  if (group.overflow)
    rows.push_back({"overflow", "holds what found no room in a group of its own"});
  rows.push_back({"last look", group.last_flush ? core::to_rfc3339(*group.last_flush) + ", " +
                                                      ago(*group.last_flush, now)
                                                : "none yet"});
  if (look.next) {
    rows.push_back({"next look", core::to_rfc3339(*look.next) + ", " + in_time(look.next, now)});
  } else {
    rows.push_back({"next look", look.members.empty() ? "none: no issue is left"
                                                      : "not known without the configuration"});
  }
  for (const GroupWait& wait : look.waits) rows.push_back({"waits", wait.text});
  return visible(group.key) + "\n\n" + core::text_table(rows) + members_text(look, now) +
         integrations_text(look, view, now);
}

}  // namespace tocsin::app
