// Whether every notification of the outbox has exactly one final state, or still waits for it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/notification.h"
#include "core/record.h"
#include "core/time.h"
#include "core/value.h"

namespace tocsin::app {

struct AuditOffender {
  std::string notification_id;  // with "/<recipient>" where one recipient's delivery is meant
  std::string integration;
  core::WallTime decided{};
  std::string what;  // "lost: …", "ended 2 times: …"
};

struct AuditVerdict {
  std::uint64_t notifications = 0;              // of the outbox
  std::uint64_t replays = 0;                    // of them that people sent again
  std::map<std::string, std::uint64_t> states;  // of those that ended, by state
  std::uint64_t pending = 0;
  std::optional<core::WallTime> oldest_pending;  // when it was decided
  std::uint64_t unjudged = 0;    // older than what the log of deliveries still holds
  std::uint64_t unreadable = 0;  // records of the outbox
  bool passed_known = true;      // else a lost notification cannot be told from one that waits
  std::vector<AuditOffender> offenders;
};

class DeliveryAudit {
 public:
  /// Where the deliverer stood before anything was read; nullopt: that cannot be asked.
  explicit DeliveryAudit(std::optional<std::vector<core::Position>> passed);
  /// Of `router-outbox` and `router-deliveries`, in the order of its partition.
  void apply(const core::RecordView& record);
  [[nodiscard]] AuditVerdict verdict() const;

 private:
  /// What has to end once: a notification, a replay of it, the delivery of one recipient.
  struct Duty {
    std::string integration;
    core::WallTime decided{};
    bool owed = false;    // by the outbox, or by the record that promised it
    bool passed = false;  // the deliverer will not read it again
    bool replay = false;
    std::vector<core::DeliveryState> ends;
  };
  void decided(const core::RecordView& record);
  void delivered(const core::RecordView& record);
  void judge(const std::string& id, const Duty& duty, AuditVerdict& out) const;

  std::optional<std::map<core::StreamPartition, std::int64_t>> passed_;
  std::map<std::string, Duty> duties_;
  std::map<std::string, std::string> promised_;  // duty of a recipient → the duty that owes it
  std::map<std::int32_t, std::int64_t> first_;   // offset of the first delivery, by partition
  std::optional<core::WallTime> log_begins_;
  std::uint64_t unreadable_ = 0;
};

std::string audit_text(const AuditVerdict& verdict, core::WallTime now);
core::Value audit_value(const AuditVerdict& verdict);

}  // namespace tocsin::app
