// Which failures of a reader of topics are told in the log, and when it looks again.
#pragma once

#include <chrono>
#include <string>

#include "core/result.h"

namespace tocsin::app {

/// Each once, until another one comes. A topic that is missing is looked for every second and told at the third look: at the first start
/// of a program its topics are made meanwhile.
class ToldFailure {
 public:
  static constexpr int kLooks = 3;

  /// true: this one is to be told now.
  bool operator()(const core::Error& error) {
    looks_ = error.message == seen_ ? looks_ + 1 : 1;
    seen_ = error.message;
    soon_ = error.code == core::Code::not_found && looks_ < kLooks;
    return looks_ == (error.code == core::Code::not_found ? kLooks : 1);
  }
  /// Until the next look; `usual`: where nothing is expected to come soon.
  [[nodiscard]] std::chrono::milliseconds pause(std::chrono::milliseconds usual) const {
    return soon_ ? std::chrono::seconds{1} : usual;
  }

 private:
  std::string seen_;
  int looks_ = 0;
  bool soon_ = false;
};

}  // namespace tocsin::app
