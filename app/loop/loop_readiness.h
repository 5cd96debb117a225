// Whether a loop is ready, and why it is not.
#pragma once

#include <atomic>
#include <string>
#include <string_view>
#include <utility>

#include "core/mutex.h"
#include "core/result.h"

namespace tocsin::app {

/// ready() and trouble() may be called from anywhere, the rest by the loop's thread.
class LoopReadiness {
 public:
  /// `stage`: its name, for trouble().
  explicit LoopReadiness(std::string stage) : stage_(std::move(stage)) {}

  void become_ready();
  /// Not ready, without a failure: something is still to be done.
  void become_unready() { ready_ = false; }
  /// Not ready: `doing` has failed with `error`. "reading fails", "it cannot be opened".
  void stumble(std::string_view doing, const core::Error& error);
  /// After this the loop needs a proof, a successful poll, before it may be ready again.
  void ask_for_proof() { needs_proof_ = true; }
  void prove() { needs_proof_ = false; }
  [[nodiscard]] bool needs_proof() const noexcept { return needs_proof_; }

  [[nodiscard]] bool ready() const noexcept { return ready_.load(std::memory_order_relaxed); }
  /// What failed last since the loop was ready, as a sentence; empty: nothing did.
  [[nodiscard]] std::string trouble() const;

 private:
  const std::string stage_;
  bool needs_proof_ = false;
  std::atomic<bool> ready_{false};
  mutable core::Mutex mutex_;
  std::string trouble_ GUARDED_BY(mutex_);
};

}  // namespace tocsin::app
