// Raw tensors between training and whoever sends them: copies, bounded by bytes, as a whole or not
// at all. What is not taken is counted by reason.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "collectors/hook/capture/raw_config.h"
#include "core/codes.h"
#include "core/frame.h"
#include "core/mutex.h"
#include "core/value.h"

namespace tocsin::hook {

/// A tensor of one step, copied.
struct RawTensor {
  core::FrameHeader header;  // run, worker, step, time; the sender numbers it
  std::uint64_t name = 0;
  std::string text;  // of the name
  std::uint64_t meta = 0;
  core::Dtype dtype = core::Dtype::unknown;
  std::vector<std::int64_t> dims;
  std::vector<std::byte> data;  // row major
};

/// Why a tensor that was asked for did not go out.
enum class RawSkip : std::uint8_t {
  step_limit,   // capture.raw.max_bytes
  queue_full,   // capture.raw.queue
  unreadable,   // no elements of a fixed size, or a view that is too large to be made one block
  refused,      // the destination says that it will never take it
  undelivered,  // it was not there until the end
};
inline constexpr std::size_t kRawSkips = 5;
std::string_view to_string(RawSkip reason) noexcept;

/// Thread-safe; only take() is for one thread. Nothing waits but wait().
class RawQueue {
 public:
  explicit RawQueue(const RawConfig& config) : config_(config) {}

  /// Called at the first push: whoever sends begins then. Set before.
  void set_first(std::function<void()> first) { first_ = std::move(first); }

  // ---- training thread
  /// Whether a tensor of so many bytes may be copied now. No: counted. The first no of a reason is
  /// told by take_news().
  bool admit(std::int64_t global_step, std::uint64_t bytes);
  void skip(RawSkip reason, std::uint64_t bytes);
  void push(RawTensor tensor);
  /// Reasons that are new since the last call, in their order.
  std::vector<RawSkip> take_news();

  // ---- sending thread
  /// The oldest tensors of one step: at least one if any waits, then up to so many bytes. They stay
  /// in the bound until done().
  std::vector<RawTensor> take(std::uint64_t most_bytes);
  /// What was taken is there, or given up: then `lost` is its reason.
  void done(const std::vector<RawTensor>& taken);
  void done(const std::vector<RawTensor>& taken, RawSkip lost);
  /// Until something waits, wake(), or the time is over.
  void wait(std::chrono::nanoseconds timeout, bool only_wake);
  void wake();
  /// What still waits or is under way is given up: it counts as undelivered.
  void give_up();

  /// Until nothing waits and nothing is under way, or the time is over.
  bool wait_until_empty(std::chrono::nanoseconds timeout) const;
  /// {tensors_total, bytes_total, sent_total, sent_bytes_total, waiting_bytes, skipped {reason: n}}
  [[nodiscard]] core::ValueMap counters() const;
  /// Tensors and bytes that did not go out, in words; empty: none.
  [[nodiscard]] std::string loss() const;

 private:
  struct Skipped {
    std::uint64_t tensors = 0;
    std::uint64_t bytes = 0;
    bool told = false;
  };
  void count(RawSkip reason, std::uint64_t bytes) REQUIRES(mutex_);
  void settle(const std::vector<RawTensor>& taken) REQUIRES(mutex_);

  const RawConfig config_;
  std::function<void()> first_;
  mutable core::Mutex mutex_;
  mutable core::CondVar changed_;
  std::deque<RawTensor> waiting_ GUARDED_BY(mutex_);
  std::uint64_t held_ GUARDED_BY(mutex_) = 0;       // bytes of what waits and of what is under way
  std::uint64_t under_way_ GUARDED_BY(mutex_) = 0;  // tensors
  std::uint64_t under_way_bytes_ GUARDED_BY(mutex_) = 0;
  bool given_up_ GUARDED_BY(mutex_) = false;
  std::int64_t step_ GUARDED_BY(mutex_) = -1;  // global; of the newest that was admitted
  std::uint64_t step_bytes_ GUARDED_BY(mutex_) = 0;
  bool woken_ GUARDED_BY(mutex_) = false;
  std::uint64_t pushed_ GUARDED_BY(mutex_) = 0;
  std::uint64_t pushed_bytes_ GUARDED_BY(mutex_) = 0;
  std::uint64_t sent_ GUARDED_BY(mutex_) = 0;
  std::uint64_t sent_bytes_ GUARDED_BY(mutex_) = 0;
  std::array<Skipped, kRawSkips> skipped_ GUARDED_BY(mutex_){};
};

}  // namespace tocsin::hook
