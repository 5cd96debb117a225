// What became of notifications: each decision, attempt and end, folded from the outbox and the log of
// deliveries.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/notification.h"
#include "core/record.h"
#include "core/time.h"
#include "core/value.h"

namespace tocsin::app {

/// One record of `router-deliveries`.
struct DeliveryStep {
  core::WallTime at{};
  core::Delivery delivery;
};

struct ToldMessage {
  core::Delivery head;       // ids, reason, kind, issues; of the decision or of its first record
  core::WallTime decided{};  // 0: neither topic says
  std::string headline;      // "[error] digits: loss is NaN"; empty: the outbox has it no more
  std::vector<DeliveryStep> steps;  // in the order of the log

  /// Of the newest word; pending while nothing has ended it.
  [[nodiscard]] core::DeliveryState state() const;
};

/// Which notifications are kept; what is not set decides nothing.
struct HistoryFilter {
  std::string integration;  // or the receiver
  std::optional<core::DeliveryState> state;
  std::optional<core::WallTime> since;                  // decided, or tried, since then
  std::function<bool(const core::IssueRef&)> tells_of;  // one of its issues
};

class DeliveryHistory {
 public:
  explicit DeliveryHistory(HistoryFilter filter) : filter_(std::move(filter)) {}
  /// Of `router-outbox` and `router-deliveries`, in the order of its partition.
  void apply(const core::RecordView& record);
  /// Those that the filter lets through, oldest decision first.
  [[nodiscard]] std::vector<const ToldMessage*> messages() const;

 private:
  [[nodiscard]] bool wanted(const core::Delivery& head) const;
  void decided(const core::RecordView& record);

  HistoryFilter filter_;
  std::map<std::string, ToldMessage> messages_;
};

/// Several lines each; times in UTC.
std::string history_text(const std::vector<const ToldMessage*>& messages);
/// A list of objects: `notification_id`, …, `state`, `attempts`.
core::Value history_value(const std::vector<const ToldMessage*>& messages);

}  // namespace tocsin::app
