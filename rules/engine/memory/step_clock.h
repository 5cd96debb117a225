// Who stands where: the least mark of the workers that take part in a mode, the newest step with
// data, and who has joined. Kept in tournament trees, so that one worker's progress costs the
// logarithm of the number of workers and not their number. Pure; rebuilt from the workers after a
// restore.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

namespace tocsin::rules {

/// The least of a growing row of numbers that change one at a time.
class LeastOf {
 public:
  static constexpr std::int64_t kNone = std::numeric_limits<std::int64_t>::max();

  /// kNone where there is nothing.
  [[nodiscard]] std::int64_t least() const noexcept { return size_ == 0 ? kNone : nodes_[1]; }
  void set(std::size_t place, std::int64_t value) {
    if (place >= size_) grow(place + 1);
    std::size_t at = size_ + place;
    if (nodes_[at] == value) return;
    nodes_[at] = value;
    while (at > 1) {
      at /= 2;
      const std::int64_t least =
          nodes_[2 * at] < nodes_[2 * at + 1] ? nodes_[2 * at] : nodes_[2 * at + 1];
      if (nodes_[at] == least) return;
      nodes_[at] = least;
    }
  }

 private:
  void grow(std::size_t wanted);

  std::vector<std::int64_t> nodes_;  // 1 the least of all, children of n at 2n and 2n + 1
  std::size_t size_ = 0;             // leaves, a power of two
};

class StepClock {
 public:
  static constexpr std::size_t kModes = 4;
  static constexpr std::int64_t kNever = std::numeric_limits<std::int64_t>::min();

  /// What counts of one worker.
  struct Presence {
    bool present = false;                     // a training process, not a node's agent
    bool gone = false;                        // left, ended or died
    bool counted = false;                     // present, and neither gone nor idle
    std::uint8_t active = 0;                  // bit m: takes part in mode m
    std::uint32_t pass = 0;                   // of its newest evaluation
    std::array<std::int64_t, kModes> mark{};  // last ended step
    std::array<std::int64_t, kModes> seen{kNever, kNever, kNever, kNever};  // last step with data
    friend bool operator==(const Presence&, const Presence&) = default;
  };
  void update(std::size_t worker, const Presence& presence);

  /// Least mark of those that take part; LeastOf::kNone when nobody does.
  [[nodiscard]] std::int64_t watermark(std::size_t mode) const noexcept {
    return marks_[mode].least();
  }
  [[nodiscard]] bool waiting(std::size_t mode) const noexcept { return active_[mode] > 0; }
  /// All that take part in anything take part in this mode.
  [[nodiscard]] bool everyone(std::size_t mode) const noexcept {
    return takers_ > 0 && active_[mode] == takers_;
  }
  /// Newest step with data of anybody; kNever when there is none.
  [[nodiscard]] std::int64_t newest(std::size_t mode) const noexcept {
    return ~newest_[mode].least();
  }
  /// The oldest evaluation pass that somebody is still in; LeastOf::kNone when there is none.
  [[nodiscard]] std::int64_t open_pass(std::size_t mode) const noexcept {
    return passes_[mode].least();
  }
  [[nodiscard]] bool anyone() const noexcept { return takers_ > 0; }
  [[nodiscard]] std::size_t trainers(std::size_t mode) const noexcept { return with_data_[mode]; }
  [[nodiscard]] std::size_t present() const noexcept { return present_; }
  [[nodiscard]] std::size_t gone() const noexcept { return gone_; }

 private:
  void count(const Presence& presence, std::ptrdiff_t by);

  std::vector<Presence> standings_;
  std::array<LeastOf, kModes> marks_;
  std::array<LeastOf, kModes> newest_;  // of ~step: the order turned round
  std::array<LeastOf, kModes> passes_;
  std::array<std::size_t, kModes> active_{};
  std::array<std::size_t, kModes> with_data_{};
  std::size_t takers_ = 0;
  std::size_t present_ = 0;
  std::size_t gone_ = 0;
};

}  // namespace tocsin::rules
