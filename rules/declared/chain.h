// Hits of several rules, one after another: which of them make a chain. What is told of a step is
// told at once, so that the order of rules within a step says nothing.
#pragma once

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "rules/contract/archive.h"
#include "rules/declared/syntax.h"

namespace tocsin::rules::declared {

/// When something was. Places are what chains go by (StepAxis).
struct Moment {
  static constexpr std::int64_t kNever = INT64_MIN;
  std::int64_t place = kNever;
  std::int64_t time = 0;  // of measurement, UTC ns
  std::uint8_t mode = 0;
  std::int64_t step = 0;  // of its mode
  std::int64_t global_step = 0;

  [[nodiscard]] bool known() const noexcept { return place != kNever; }

  template <typename A>
  friend void io(A& a, Moment& m) {
    io_all(a, m.place, m.time, m.mode, m.step, m.global_step);
  }
};

/// What a chain is made of.
struct Links {
  std::size_t count = 0;    // rules of the sequence
  std::size_t without = 0;  // rules behind them whose hits break it
  Size within;              // from the first to the last
  /// One rule, and others that must not be silent: hits when it is over and none of them came.
  [[nodiscard]] bool awaits() const noexcept { return count == 1; }
};

/// As far as a sequence has come for one unit.
class Chain {
 public:
  /// All that is known of one place: bit i = the i-th rule hit there (those of `without` behind the
  /// others). Places come in ascending order.
  void take(const Links& links, std::uint64_t hits, const Moment& at);
  /// Everything up to `at` has been taken. Whether the sequence holds now.
  bool settle(const Links& links, const Moment& at);

  [[nodiscard]] const Moment& first() const noexcept { return first_; }
  [[nodiscard]] const Moment& last() const noexcept { return last_; }
  /// When it was last seen to hold: the newest hit of its last rule.
  [[nodiscard]] const Moment& held() const noexcept { return held_at_; }
  /// Nothing is left of it that could hold, or could go on.
  [[nodiscard]] bool idle(const Links& links, const Moment& at) const;

  template <typename A>
  friend void io(A& a, Chain& c) {
    io_all(a, c.starts_, c.first_, c.last_, c.held_at_, c.held_, c.again_, c.quiet_);
  }

 private:
  [[nodiscard]] static std::int64_t far(const Links& links, const Moment& from, const Moment& to);
  [[nodiscard]] static bool near(const Links& links, const Moment& from, const Moment& to);

  std::vector<Moment> starts_;  // [k]: the latest first hit of a chain of k + 1 rules
  Moment first_;                // of the newest whole chain
  Moment last_;
  Moment held_at_;
  bool held_ = false;        // there was one, and its last rule still hits
  bool again_ = false;       // since settle()
  std::uint32_t quiet_ = 0;  // settle() without, in a row
};

}  // namespace tocsin::rules::declared
