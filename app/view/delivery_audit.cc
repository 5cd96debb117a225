#include "app/view/delivery_audit.h"

#include <algorithm>
#include <utility>

#include "actions/actions.h"
#include "app/view/view_words.h"
#include "core/topics.h"
#include "core/visible_text.h"
#include "ingest/ingest.h"

namespace tocsin::app {
namespace {

std::string duty_of(std::string_view id, std::string_view replay) {
  return std::string(id) + (replay.empty() ? "" : " replay ") + std::string(replay);
}

}  // namespace

DeliveryAudit::DeliveryAudit(std::optional<std::vector<core::Position>> passed) {
  if (!passed) return;
  passed_.emplace();
  for (const core::Position& one : *passed) (*passed_)[one.where] = one.next;
}

void DeliveryAudit::decided(const core::RecordView& record) {
  const auto notification = ingest::open_notification(record);
  if (!notification) {
    ++unreadable_;
    return;
  }
  const std::string_view replay = record.header(actions::kReplayHeader).value_or("");
  Duty& duty = duties_[duty_of(notification->notification_id, replay)];
  duty.integration = notification->integration;
  duty.decided = notification->decided_at;
  duty.owed = true;
  duty.replay = !replay.empty();
  if (!passed_) return;
  const auto stands = passed_->find({std::string(record.stream), record.partition});
  duty.passed = stands != passed_->end() && record.offset < stands->second;
}

void DeliveryAudit::delivered(const core::RecordView& record) {
  const auto first = first_.try_emplace(record.partition, record.offset).first;
  first->second = std::min(first->second, record.offset);
  const core::WallTime at = core::wall_time(record.timestamp);
  if (!log_begins_ || at < *log_begins_) log_begins_ = at;
  const auto delivery = ingest::decode_delivery(record);
  if (!delivery || delivery->state == core::DeliveryState::pending) return;
  const std::string_view replay = actions::replay_of(*delivery);
  const std::string own = duty_of(delivery->notification_id, replay);
  Duty& duty = duties_[own];
  duty.ends.push_back(delivery->state);
  if (duty.integration.empty()) duty.integration = delivery->integration;
  if (duty.decided == core::WallTime{}) duty.decided = delivery->stages.decided;
  for (const std::string& recipient : actions::recipients_owed(*delivery)) {
    promised_[duty_of(delivery->notification_id + "/" + recipient, replay)] = own;
  }
}

void DeliveryAudit::apply(const core::RecordView& record) {
  if (record.tombstone) return;
  if (record.topic == core::topic::kRouterOutbox) {
    decided(record);
  } else if (record.topic == core::topic::kRouterDeliveries) {
    delivered(record);
  }
}

void DeliveryAudit::judge(const std::string& id, const Duty& duty, AuditVerdict& out) const {
  const auto offends = [&](std::string what) {
    out.offenders.push_back({id, duty.integration, duty.decided, std::move(what)});
  };
  if (duty.ends.size() > 1) {
    std::string ends;
    for (const auto end : duty.ends)
      ends += (ends.empty() ? "" : ", ") + std::string(to_string(end));
    return offends("ended " + std::to_string(duty.ends.size()) + " times: " + ends);
  }
  if (!duty.ends.empty() || !duty.owed) return;
  const bool trimmed =
      std::any_of(first_.begin(), first_.end(), [](const auto& one) { return one.second > 0; });
  if (duty.passed && trimmed && log_begins_ && duty.decided < *log_begins_) {
    ++out.unjudged;
  } else if (duty.passed) {
    offends("lost: the deliverer has passed it, and no record says how it ended");
  } else {
    ++out.pending;
    if (!out.oldest_pending || duty.decided < *out.oldest_pending) {
      out.oldest_pending = duty.decided;
    }
  }
}

AuditVerdict DeliveryAudit::verdict() const {
  AuditVerdict out;
  out.unreadable = unreadable_;
  out.passed_known = passed_.has_value();
  for (const auto& [id, duty] : duties_) {
    if (duty.owed) ++(duty.replay ? out.replays : out.notifications);
    if (duty.owed && duty.ends.size() == 1) ++out.states[std::string(to_string(duty.ends[0]))];
    judge(id, duty, out);
  }
  for (const auto& [id, parent] : promised_) {
    const Duty& owes = duties_.at(parent);
    if (duties_.contains(id) && !duties_.at(id).ends.empty()) continue;
    Duty duty = owes;
    duty.ends.clear();
    judge(id, duty, out);
  }
  return out;
}

std::string audit_text(const AuditVerdict& verdict, core::WallTime now) {
  std::string out = std::to_string(verdict.notifications) + " notifications in the outbox";
  if (verdict.replays > 0) out += ", " + std::to_string(verdict.replays) + " replays";
  out += "\n";
  for (const auto& [state, count] : verdict.states) {
    out += "  " + state + ": " + std::to_string(count) + "\n";
  }
  out += "  pending: " + std::to_string(verdict.pending);
  if (verdict.oldest_pending) out += ", the oldest decided " + ago(*verdict.oldest_pending, now);
  out += "\n";
  if (verdict.unjudged > 0) {
    out += "  older than the log of deliveries: " + std::to_string(verdict.unjudged) + "\n";
  }
  if (verdict.unreadable > 0) {
    out += "  unreadable records: " + std::to_string(verdict.unreadable) + "\n";
  }
  if (!verdict.passed_known) {
    out += "  the deliverer's position is unknown: what was lost counts as pending here\n";
  }
  if (verdict.offenders.empty()) return out + "every notification has one state\n";
  out += std::to_string(verdict.offenders.size()) + " offend:\n";
  for (const AuditOffender& one : verdict.offenders) {
    out += "  " + core::visible(one.notification_id, 200) + "  " +
           core::visible(one.integration, 100) + "  decided " + core::to_rfc3339(one.decided) +
           "  " + one.what + "\n";
  }
  return out;
}

core::Value audit_value(const AuditVerdict& verdict) {
  core::ValueMap states;
  for (const auto& [state, count] : verdict.states) states.emplace_back(state, count);
  core::ValueList offenders;
  for (const AuditOffender& one : verdict.offenders) {
    offenders.push_back(core::ValueMap{{"notification_id", one.notification_id},
                                       {"integration", one.integration},
                                       {"decided_at", core::to_rfc3339(one.decided)},
                                       {"what", one.what}});
  }
  return core::ValueMap{
      {"notifications", verdict.notifications},
      {"replays", verdict.replays},
      {"states", std::move(states)},
      {"pending", verdict.pending},
      {"oldest_pending", verdict.oldest_pending
                             ? core::Value(core::to_rfc3339(*verdict.oldest_pending))
                             : core::Value()},
      {"unjudged", verdict.unjudged},
      {"unreadable", verdict.unreadable},
      {"position_known", verdict.passed_known},
      {"offenders", std::move(offenders)}};
}

}  // namespace tocsin::app
