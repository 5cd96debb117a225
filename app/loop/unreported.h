// What a stage tells the log only once it is durable.
#pragma once

#include <iterator>
#include <utility>
#include <vector>

namespace tocsin::app {

/// Follows Stage::committing() and committed().
template <typename T>
class Unreported {
 public:
  void add(T item) { fresh_.push_back(std::move(item)); }
  void committing() {
    std::move(fresh_.begin(), fresh_.end(), std::back_inserter(under_way_));
    fresh_.clear();
  }
  template <typename Tell>
  void committed(Tell&& tell) {
    for (const T& item : under_way_) tell(item);
    under_way_.clear();
  }
  void clear() {
    fresh_.clear();
    under_way_.clear();
  }

 private:
  std::vector<T> fresh_;
  std::vector<T> under_way_;
};

}  // namespace tocsin::app
