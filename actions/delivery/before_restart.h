// What the records of deliveries say of notifications that are read again after a restart. Internal
// to actions.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "actions/delivery/item.h"
#include "core/notification.h"
#include "core/time.h"

namespace tocsin::actions {

/// The attempts at a notification that is not finished.
struct Retry {
  std::uint32_t attempts = 0;
  core::WallTime not_before{};
  core::Duration wait{};  // what lay between the attempt and not_before
  bool maybe_announced = false;
  std::uint32_t own_failures = 0;
  bool minimal = false;  // the short form is next
  std::optional<core::WallTime> misconfigured_since;
};

class BeforeRestart {
 public:
  /// An attempt after which the notification waits; what is known of it with this record.
  const Retry& attempted(const core::Delivery& delivery);
  /// The notification is finished. Was it perhaps seen although no answer said so?
  bool finished(const core::Delivery& delivery);

  // Each says what it knows once, when the notification is read again.
  /// The item goes on with its attempts where they were.
  void recall(Item& item, core::WallTime now);
  /// It took the place of an open that nobody saw: it is the open now.
  bool take_promotion(const std::string& id) { return promoted_.erase(id) > 0; }
  /// Recipients of a finished notification that get deliveries of their own.
  std::vector<std::string> take_owed(const std::string& id);

 private:
  std::optional<Retry> take_retry(const std::string& id);

  std::map<std::string, Retry> retries_;
  std::set<std::string> promoted_;
  std::map<std::string, std::vector<std::string>> owed_;
};

}  // namespace tocsin::actions
