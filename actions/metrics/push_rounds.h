// A thread that calls once a second, for what must be said again and again. Internal to actions.
#pragma once

#include <functional>
#include <memory>

namespace tocsin::actions {

class PushRounds {
 public:
  /// Calls `turn` at once and then about once a second, until the end of its life, which waits for a
  /// call in progress.
  explicit PushRounds(std::function<void()> turn);
  ~PushRounds();
  PushRounds(const PushRounds&) = delete;
  PushRounds& operator=(const PushRounds&) = delete;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace tocsin::actions
