#include "actions/delivery/digest.h"

#include <algorithm>

#include "actions/delivery/item.h"
#include "core/identity.h"

namespace tocsin::actions {

namespace {

/// Of one attempt that several messages name, the newest word.
void add_runs(const std::vector<core::RunTold>& runs, std::vector<core::RunTold>& out) {
  for (const core::RunTold& told : runs) {
    const auto same = std::find_if(out.begin(), out.end(), [&](const core::RunTold& known) {
      return known.run.uid == told.run.uid && known.run.attempt == told.run.attempt;
    });
    if (same == out.end()) {
      out.push_back(told);
    } else {
      *same = told;
    }
  }
}

}  // namespace

core::Notification digest_of(const std::vector<Item*>& items, std::uint32_t max_issues) {
  core::Notification digest = *items.front()->notification;
  digest.notification_id =
      core::make_id("ntf_", {"digest", items.front()->notification->notification_id,
                             items.back()->notification->notification_id});
  digest.kind = core::NotificationKind::update;
  digest.reason = "digest";
  digest.group_key = "digest";
  digest.group_labels = {};
  digest.common_labels = {};
  digest.rendered.clear();
  digest.handles.clear();
  digest.issues.clear();
  digest.suppressed.clear();
  digest.runs.clear();
  digest.packed.reset();
  digest.firing = false;
  digest.firing_count = digest.resolved_count = digest.truncated = 0;
  for (const Item* item : items) {
    const auto whole = unpacked(item->notification);
    const core::Notification& one = *whole;
    digest.firing = digest.firing || one.firing;
    digest.firing_count += one.firing_count;
    digest.resolved_count += one.resolved_count;
    digest.truncated += one.truncated;
    digest.decided_at = std::max(digest.decided_at, one.decided_at);
    digest.issues.insert(digest.issues.end(), one.issues.begin(), one.issues.end());
    add_runs(one.runs, digest.runs);
  }
  std::stable_sort(digest.issues.begin(), digest.issues.end(), [](const auto& a, const auto& b) {
    return a.issue.severity > b.issue.severity;
  });
  if (digest.issues.size() > max_issues) {
    digest.truncated += digest.issues.size() - max_issues;
    digest.issues.resize(max_issues);
  }
  return digest;
}

}  // namespace tocsin::actions
