// Recipients that others do not wait for. Internal to actions.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "actions/contract/message_fault.h"

namespace tocsin::actions {

/// Recipients of one integration that have deliveries of their own, with how many wait.
class PutOff {
 public:
  void began(const std::string& recipient) { ++waiting_[recipient]; }
  void ended(const std::string& recipient) {
    const auto found = waiting_.find(recipient);
    if (found != waiting_.end() && --found->second == 0) waiting_.erase(found);
  }
  /// Names them in a message that goes to all others.
  void leave_out(HandleList& handles) const {
    for (const auto& [recipient, count] : waiting_) handles.emplace_back(kept::kNotTo, recipient);
  }

 private:
  std::map<std::string, std::uint64_t> waiting_;
};

}  // namespace tocsin::actions
