// A bounded set of names. Internal to actions.
#pragma once

#include <cstddef>
#include <deque>
#include <string>
#include <unordered_set>

namespace tocsin::actions {

/// Names, the oldest of which are forgotten beyond a limit.
class Remembered {
  static constexpr std::size_t kLimit = 100'000;

 public:
  void add(const std::string& name) {
    if (!names_.insert(name).second) return;
    order_.push_back(name);
    if (order_.size() > kLimit) {
      names_.erase(order_.front());
      order_.pop_front();
    }
  }
  bool erase(const std::string& name) { return names_.erase(name) > 0; }
  [[nodiscard]] bool has(const std::string& name) const { return names_.contains(name); }

 private:
  std::unordered_set<std::string> names_;
  std::deque<std::string> order_;
};

}  // namespace tocsin::actions
