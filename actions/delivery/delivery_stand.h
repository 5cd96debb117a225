// Whether an integration stands still: messages wait, and none arrives. Internal to actions.
#pragma once

#include <optional>
#include <string>
#include <utility>

#include "core/time.h"

namespace tocsin::actions {

/// Pure; one per lane. It begins with the first attempt that fails through no fault of its message
/// and ends when a message arrives or none waits any more.
class DeliveryStand {
 public:
  explicit DeliveryStand(core::Duration after) : after_(after) {}

  void failed(core::WallTime now, std::string why) {
    if (!since_) since_ = now;
    why_ = std::move(why);
  }
  void moved() {
    since_.reset();
    why_.clear();
  }
  /// The clock has stepped back since.
  void not_later_than(core::WallTime now) {
    if (since_ && *since_ > now) since_ = now;
  }
  /// Since when, once that is long enough ago.
  [[nodiscard]] std::optional<core::WallTime> stands(core::WallTime now) const {
    return since_ && now - *since_ >= after_ ? since_ : std::nullopt;
  }
  [[nodiscard]] bool failing() const noexcept { return since_.has_value(); }
  /// What the last attempt came to.
  [[nodiscard]] const std::string& why() const noexcept { return why_; }

 private:
  core::Duration after_;
  std::optional<core::WallTime> since_;
  std::string why_;
};

}  // namespace tocsin::actions
