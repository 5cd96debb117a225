// What should vary, lag or be fresh in learning by reward: the rule reward's counts of one signal, one
// target network and the memory. Trivially copyable, O(1).
#pragma once

#include <algorithm>
#include <cstdint>
#include <string_view>

#include "rules/builtin/losses/return_course.h"

namespace tocsin::rules {

/// Values of one signal, and how many differ from the one before.
struct SignalCourse {
  double seen = 0;
  double changes = 0;
  double first = 0;
  double last = 0;
  double valued = 0;  // whether `last` is known: of logged scalars
  double ones = 0;    // of signals that are 0 or 1

  void log(double value) {
    if (seen > 0 && value != last) ++changes;
    if (seen == 0) first = value;
    ++seen;
    last = value;
    valued = 1;
  }
  [[nodiscard]] bool still(double least) const { return seen >= least && changes == 0; }
};

/// A copy of a trained network that nobody trains, as the hook has looked at it.
struct TargetCourse {
  static constexpr double kEqualLooks = 64;
  static constexpr double kFewChanges = 4;     // below, no interval is known
  static constexpr double kIntervals = 10;     // without a change
  static constexpr double kUnplanned = 20000;  // updates without any, where there is no plan
  static constexpr double kHalf = 0.5;         // of the plan
  static constexpr double kEnded = 256;        // updates of a run that is over
  enum Standing : std::uint64_t { kOpen, kNever, kStopped, kEqual };

  double updates = 0;
  double looks = 0;
  double moves = 0;        // looks at which the trained network had changed
  double changes = 0;      // the same of the copy
  double equal = 0;        // looks at which both were the same
  double changed_at = 0;   // updates by the newest word of a change
  double moved_since = 0;  // since then

  void add(double more_updates, double more_looks, double more_moves, double more_changes,
           double more_equal) {
    updates += more_updates;
    looks += more_looks;
    moves += more_moves;
    changes += more_changes;
    equal += more_equal;
    moved_since += more_moves;
    if (more_changes <= 0) return;
    changed_at = updates;
    moved_since = 0;
  }
  /// Updates from one change to the next, at most.
  [[nodiscard]] double interval() const { return changes > 0 ? changed_at / changes : 0; }
  [[nodiscard]] Standing standing(const RewardRun& run, bool over) const {
    if (moves >= kEqualLooks && looks >= kEqualLooks && equal == looks) return kEqual;
    if (changes == 0 && moves > 0 && equal > 0) {
      const bool planned = run.share() > 0;
      const bool late = planned ? run.share() >= kHalf : updates >= kUnplanned;
      if (late || (over && !planned && updates >= kEnded)) return kNever;
    }
    if (changes >= kFewChanges && moved_since > 0 &&
        updates - changed_at >= kIntervals * interval()) {
      return kStopped;
    }
    return kOpen;
  }
};

/// What is drawn from a memory, in a window that ends when the number of draws has doubled.
struct MemoryCourse {
  static constexpr double kFirst = 1000;    // draws
  static constexpr double kExpected = 100;  // of fresh ones, at least, to judge by
  static constexpr double kShare = 0.1;     // of what is expected

  double draws = 0;  // in all
  double at = 0;     // draws at the newest look
  double made = 0;   // in the window: different transitions that came to be
  double drawn = 0;
  double fresh = 0;  // drawn for the first time
  // The newest window that was judged:
  double was_made = 0;
  double was_drawn = 0;
  double was_fresh = 0;
  std::uint64_t judged = 0;

  /// True: time to look.
  bool add(double more_made, double more_drawn, double more_fresh) {
    if (draws > 0 || more_drawn > 0) made += more_made;
    draws += more_drawn;
    drawn += more_drawn;
    fresh += more_fresh;
    if (draws < std::max(kFirst, 2 * at)) return false;
    at = draws;
    was_made = made;
    was_drawn = drawn;
    was_fresh = fresh;
    made = drawn = fresh = 0;
    judged = 1;
    return true;
  }
  /// Of a memory that forgets nothing and is drawn from evenly, which has the fewest: of A that come and
  /// N draws A·N / (A + N).
  [[nodiscard]] double expected() const {
    const double both = was_made + was_drawn;
    return both > 0 ? was_made * was_drawn / both : 0;
  }
  [[nodiscard]] bool knows() const { return judged != 0 && expected() >= kExpected; }
  [[nodiscard]] bool stale() const { return knows() && was_fresh < kShare * expected(); }
};

}  // namespace tocsin::rules
