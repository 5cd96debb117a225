// How a store of looking back stands: whether it is written, what was found damaged, what was set aside.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "core/clock.h"
#include "core/error.h"
#include "core/log.h"
#include "core/mutex.h"
#include "core/time.h"
#include "core/value.h"
#include "insights/insights.h"

namespace tocsin::app {

/// One thread writes the store and says how it stands; requests ask, and tell what damage they meet.
/// Thread-safe.
class StoreCondition {
 public:
  /// Is given each change, as value() tells it, by the thread that writes.
  using Teller = std::function<void(const core::Value&)>;

  /// `store`: `events` or `curves`. `begun_anew`: what the log calls it. Both outlive it.
  StoreCondition(std::string_view store, std::string_view begun_anew, const core::Clock& clock,
                 core::Log& log, Teller tell);

  /// Called again and again, as stopped() is: both notice that a file set aside was deleted.
  void is_written();
  /// resource_exhausted: the disk is full.
  void stopped(const core::Error& why);
  /// Damage was met in the file that is there now.
  void condemn(const std::string& why);
  /// Why the file that is there must be set aside; empty: it need not be.
  [[nodiscard]] std::string condemned() const;
  /// The writer has opened `path`, or begun it anew: logs that, and forgets what was said of the file before.
  void opened(const std::string& path, const insights::SetAside& moved);
  /// For a reader that is opened behind this call: damage that it meets condemns that file, and no later one.
  [[nodiscard]] insights::DamageHook hook_of_reader();

  /// Why it is not written; empty: it is, or nobody has tried yet.
  [[nodiscard]] std::string trouble() const;
  /// For GET /api/v1/status.
  [[nodiscard]] core::Value value() const;

 private:
  struct Kept {
    insights::SetAside file;
    core::WallTime at{};
  };
  void stands(std::string_view state, const std::string& trouble);
  void condemn_file(std::uint64_t file, const std::string& why);
  /// Whoever has seen to the file and deleted it need not be told of it any more.
  [[nodiscard]] static bool is_there(const Kept& aside);
  [[nodiscard]] core::Value value_now() const REQUIRES(mutex_);

  const std::string store_;
  const std::string begun_anew_;
  const core::Clock& clock_;
  core::Log& log_;
  const Teller tell_;
  mutable core::Mutex mutex_;
  std::string state_ GUARDED_BY(mutex_) = "starting";
  std::string trouble_ GUARDED_BY(mutex_);
  std::string condemned_ GUARDED_BY(mutex_);
  std::uint64_t file_ GUARDED_BY(mutex_) = 0;         // counts the files that were begun
  std::optional<Kept> set_aside_ GUARDED_BY(mutex_);  // nullopt: deleted, too
};

}  // namespace tocsin::app
