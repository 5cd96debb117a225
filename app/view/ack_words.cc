#include "app/view/ack_words.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "app/view/view_words.h"
#include "core/identity.h"
#include "core/topics.h"
#include "core/visible_text.h"

namespace tocsin::app {
namespace {

using routing::Acknowledgement;

/// One without an end of its own lasts as long as the router lets it by default.
const core::Duration kAckTimeout = routing::Config{}.ack_timeout;
/// How long a record is kept after its end: no router reads it late by as much.
constexpr core::Duration kAckKept = std::chrono::hours(24 * 30);

core::WallTime end_of(const Acknowledgement& ack) {
  return ack.until.value_or(ack.at + kAckTimeout);
}

core::OutRecord control_record(const std::string& id, std::optional<std::string> value) {
  core::OutRecord out{core::topic::kRouterControl, "ack/" + id, std::move(value)};
  out.partition = 0;
  return out;
}

bool names_issue(const Acknowledgement& ack, const std::string& key, const core::Issue& issue) {
  if (std::find(ack.issues.begin(), ack.issues.end(), key) != ack.issues.end()) return true;
  return !ack.run.empty() && ack.run == core::to_text(issue.run.uid);
}

}  // namespace

std::vector<core::OutRecord> ack_records(const Acknowledgement& ack,
                                         const std::map<std::string, Acknowledgement>& known,
                                         core::WallTime now) {
  std::vector<core::OutRecord> out{control_record(ack.id, ack_json(ack))};
  for (const auto& [id, old] : known) {
    if (id != ack.id && end_of(old) + kAckKept < now) out.push_back(ack_tombstone(id));
  }
  return out;
}

core::OutRecord ack_tombstone(const std::string& id) { return control_record(id, std::nullopt); }

std::string ack_id(const Acknowledgement& ack) {
  std::string what = ack.group + "/" + ack.run;
  for (const std::string& key : ack.issues) what += "/" + key;
  return core::make_id("ack_", {what, ack.by, std::to_string(core::nanoseconds(ack.at))});
}

std::vector<std::string> acks_of(const TopicView& view, const std::string& key,
                                 const TopicView::SeenIssue& seen, core::WallTime now) {
  std::vector<std::string> out;
  if (seen.newest.status != core::IssueStatus::firing) return out;
  for (const auto& [id, ack] : view.acknowledgements()) {
    if (ack.at < seen.since || end_of(ack) <= now || !names_issue(ack, key, seen.newest)) continue;
    out.push_back(id);
  }
  return out;
}

const Acknowledgement* acknowledged(const TopicView& view, const std::string& key,
                                    const TopicView::SeenIssue& seen, core::WallTime now) {
  const Acknowledgement* newest = nullptr;
  for (const std::string& id : acks_of(view, key, seen, now)) {
    const Acknowledgement& ack = view.acknowledgements().at(id);
    if (newest == nullptr || ack.at > newest->at) newest = &ack;
  }
  return newest;
}

std::string ack_text(const Acknowledgement& ack, core::WallTime now) {
  std::string out = core::visible(ack.by);
  if (const std::string when = ago(ack.at, now); !when.empty()) out += ", " + when;
  if (!ack.note.empty()) out += ": " + core::visible(ack.note);
  if (ack.until) out += " (until " + core::to_rfc3339(*ack.until) + ")";
  return out;
}

}  // namespace tocsin::app
