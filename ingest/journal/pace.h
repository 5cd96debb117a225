// When a reader of the journal looks for records: at once after a sign of change, then again after
// growing pauses, for a commit becomes visible a little after its bytes are written; and hardly ever
// while nothing happens. Pure: times in, times out.
#pragma once

#include <chrono>
#include <cstddef>

namespace tocsin::ingest {

class JournalPace {
 public:
  using Time = std::chrono::steady_clock::time_point;
  using Pause = std::chrono::nanoseconds;
  static constexpr Pause kForOthers = std::chrono::milliseconds(8);

  /// `for_others`: the pause while others write on and on, see deaf_until().
  explicit JournalPace(Pause for_others = kForOthers) : others_(for_others) {}

  /// Somebody has written, perhaps we ourselves: look now, and soon again.
  void changed();
  /// What we want to see is another thing than at the last look: look now.
  void wanted();
  /// A look found so many records. `signs`: changes announce themselves, as far as anybody knows.
  void looked(std::size_t found, bool signs, Time now);

  /// `asked`: the reader has just been asked for records. While a change is about it gets a look.
  [[nodiscard]] bool due(Time now, bool asked) const;
  [[nodiscard]] Time next() const noexcept { return next_; }
  /// Until then signs say nothing new: while others write on and on, one a millisecond is enough, and
  /// one in the pause for others when what they write has been nothing for us for a while.
  [[nodiscard]] Time deaf_until() const noexcept { return deaf_until_; }
  /// Is it worth while to ask for signs? Who is asked for records asks, unless it may be late.
  [[nodiscard]] bool hears(Time now, bool asked) const noexcept;
  /// Three times in a row a look found what no sign had announced: it looks as where there are none.
  [[nodiscard]] bool distrusts() const noexcept;

 private:
  Pause others_;
  Time next_{};
  Time deaf_until_{};
  Pause pause_{0};         // before the look after the next one
  bool announced_ = true;  // what the next look may find
  int unannounced_ = 0;    // looks in a row that found what nothing had announced
  int for_others_ = 0;     // changes in a row, close together, in which nothing was for us
};

}  // namespace tocsin::ingest
