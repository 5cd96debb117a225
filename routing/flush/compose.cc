// The message of a decision: what it lists, and the name of its incident (docs/routing.md).
#include <algorithm>
#include <chrono>
#include <string>
#include <string_view>
#include <utility>

#include "core/identity.h"
#include "routing/flush/flush.h"
#include "routing/tables/size.h"

namespace tocsin::routing {
namespace {

using core::NotificationKind;
using core::WallTime;

constexpr core::Duration kCloseMaxAge = std::chrono::hours(24 * 7);

core::NotifiedIssue line(const Mention& mention, core::Issue report, WallTime tick) {
  core::NotifiedIssue out{mention.state->key.text(), mention.episode, std::move(report), {}};
  if (mention.firing && !mention.over) {
    out.issue.status = core::IssueStatus::firing;
    out.issue.resolution = core::Resolution::none;
    out.issue.ends_at.reset();
    out.issue.ending.reset();
    if (mention.ack != nullptr) out.acknowledged = *mention.ack;
  } else if (out.issue.status == core::IssueStatus::firing) {
    // It goes on firing elsewhere; what ends is this group's incident.
    out.issue.status = core::IssueStatus::resolved;
    out.issue.resolution = core::Resolution::superseded;
    out.issue.ends_at = std::max(tick, out.issue.starts_at);
    out.issue.ending = core::Ending{"It is told elsewhere from now on.", {}, {}, {}};
  }
  return out;
}

/// The first `limit` in the order of a message.
void put_first(std::vector<Mention>& mentions, std::size_t limit) {
  const auto end = mentions.begin() + static_cast<std::ptrdiff_t>(std::min(limit, mentions.size()));
  std::partial_sort(mentions.begin(), end, mentions.end(), told_before);
}

/// Lists what fits: at most max_alerts, and bytes as far as a record holds them. The first one is
/// always listed. Returns how many were left out.
std::size_t list(std::vector<Mention> mentions, const FlushContext& context,
                 std::vector<core::NotifiedIssue>& out, std::size_t& bytes) {
  const std::size_t most =
      context.integration.max_alerts == 0 ? mentions.size() : context.integration.max_alerts;
  put_first(mentions, most);
  for (const Mention& mention : mentions) {
    if (out.size() >= most) break;
    core::Issue report = report_of(mention);
    const std::size_t size = approximate_bytes(report);
    if (bytes > 0 && bytes + size > kMaxMessageBytes) break;
    bytes += size;
    out.push_back(line(mention, std::move(report), context.tick));
  }
  return mentions.size() - out.size();
}

core::Labels common_labels(const std::vector<Mention>& mentions) {
  core::Labels common;
  if (mentions.empty()) return common;
  const core::Labels first = mentions.front().state->issue.labels;
  for (const auto& [name, value] : first.entries()) {
    const bool shared = std::all_of(mentions.begin(), mentions.end(),
                                    [&, &label = name, &wanted = value](const Mention& one) {
                                      return one.state->issue.labels.at(label) == wanted;
                                    });
    if (shared) common.set(name, value);
  }
  return common;
}

/// The incident goes by its first sign, the first issue of the message: labels of the group, rule and
/// severity name no other one than its headline.
void name_by_first_sign(core::Notification& out) {
  if (out.issues.empty()) return;
  const core::Labels& first = out.issues.front().issue.labels;
  core::Labels group;
  for (const auto& [name, value] : out.group_labels.entries()) {
    group.set(name, first.has(name) ? first.get(name) : value);
  }
  out.group_labels = std::move(group);
  for (const std::string_view name : {"alertname", "rule", "severity"}) {
    if (first.has(name)) out.common_labels.set(name, first.get(name));
  }
}

}  // namespace

core::Notification compose(const Group& group, const FlushContext& context,
                           const FlushDecision& decision, const TellLog& log, WallTime now,
                           const std::string& config_version) {
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
  out.reason = decision.reason;
  if (context.occasion != nullptr &&
      (context.occasion->reason == out.reason || context.occasion->explains)) {
    out.why = context.occasion->why;
  }
  out.kind = *decision.kind;
  out.firing = decision.still_firing;
  out.group_labels = group.labels;
  std::vector<Mention> mentions = decision.firing;
  if (integration.send_resolved) {
    mentions.insert(mentions.end(), decision.resolved.begin(), decision.resolved.end());
    out.resolved_count = decision.resolved.size();
  }
  const auto over = static_cast<std::uint64_t>(
      std::count_if(decision.firing.begin(), decision.firing.end(),
                    [](const Mention& mention) { return mention.over; }));
  out.firing_count = decision.firing.size() - over;
  out.resolved_count += over;
  out.common_labels = common_labels(mentions);
  std::size_t bytes = 0;
  out.truncated = list(std::move(mentions), context, out.issues, bytes);
  out.truncated += list(decision.suppressed, context, out.suppressed, bytes);
  name_by_first_sign(out);
  out.decided_at = now;
  const bool close = out.kind == NotificationKind::close;
  out.expires_at =
      now + (close ? std::max(integration.max_age, kCloseMaxAge) : integration.max_age);
  out.config_version = config_version;
  return out;
}

}  // namespace tocsin::routing
