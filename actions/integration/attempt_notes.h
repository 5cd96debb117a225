// What an attempt leaves for the next one at the same notification. Internal to actions.
#pragma once

#include <cstddef>
#include <deque>
#include <map>
#include <string>
#include <utility>

#include "core/mutex.h"

namespace tocsin::actions {

/// By notification id, in memory; the oldest are forgotten beyond kMost. Thread-safe.
class AttemptNotes {
 public:
  static constexpr std::size_t kMost = 4096;

  [[nodiscard]] std::string at(const std::string& notification) const {
    const core::MutexLock lock(mutex_);
    const auto found = notes_.find(notification);
    return found == notes_.end() ? std::string() : found->second;
  }

  /// An empty text forgets.
  void set(const std::string& notification, std::string text) {
    const core::MutexLock lock(mutex_);
    if (text.empty()) {
      notes_.erase(notification);
      return;
    }
    if (notes_.insert_or_assign(notification, std::move(text)).second) {
      order_.push_back(notification);
    }
    for (; order_.size() > kMost; order_.pop_front()) notes_.erase(order_.front());
  }

 private:
  mutable core::Mutex mutex_;
  std::map<std::string, std::string> notes_ GUARDED_BY(mutex_);
  std::deque<std::string> order_ GUARDED_BY(mutex_);  // as they came; some are forgotten already
};

}  // namespace tocsin::actions
