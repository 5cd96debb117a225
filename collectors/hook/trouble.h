// What goes wrong in the background, for whoever asks.
#pragma once

#include <atomic>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>

#include "core/log.h"
#include "core/mutex.h"

namespace tocsin::hook {

/// What goes wrong in the background, for counters: nothing is ever printed into the user's
/// process. Thread-safe.
class Trouble final : public core::Log {
 public:
  /// Keeps warnings and errors of the transport, forgets the rest.
  void write(core::Level level, std::string_view event,
             std::initializer_list<core::Field> fields) override;
  void set(std::string text);
  void clear();
  [[nodiscard]] std::string text() const;  // empty: nothing
  [[nodiscard]] std::uint64_t count() const noexcept { return count_.load(); }

 private:
  mutable core::Mutex mutex_;
  std::string text_ GUARDED_BY(mutex_);
  std::atomic<std::uint64_t> count_{0};
};

}  // namespace tocsin::hook
