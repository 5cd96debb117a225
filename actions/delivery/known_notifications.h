// Which notifications were seen, so that none is delivered twice. Internal to actions.
#pragma once

#include <string>
#include <unordered_set>

#include "actions/delivery/remembered.h"

namespace tocsin::actions {

/// Ids of notifications that wait, and of the newest that are finished.
class KnownNotifications {
 public:
  [[nodiscard]] bool has(const std::string& id) const {
    return finished_.has(id) || waiting_.contains(id);
  }
  void wait(const std::string& id) { waiting_.insert(id); }
  void finish(const std::string& id) {
    waiting_.erase(id);
    finished_.add(id);
  }

 private:
  std::unordered_set<std::string> waiting_;
  Remembered finished_;
};

}  // namespace tocsin::actions
