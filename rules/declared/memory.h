// What a rule remembers of one unit: words of 8 bytes, as many as its formula needs, in one piece
// that can be copied, saved and loaded as it is. A window that slides is a ring of points; one that
// ends, or begins with the run, is a handful of running numbers per aggregate.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "rules/declared/code.h"
#include "rules/declared/syntax.h"

namespace tocsin::rules::declared {

inline constexpr std::uint32_t kMostPoints = 1024;  // of one window that slides
inline constexpr std::size_t kMostSources = 8;      // selections of one rule

enum class Kind : std::uint8_t {
  count,
  sum,
  mean,
  min,
  max,
  std,
  first,
  last,
  delta,
  rate,
  slope,
  quantile,
  ewma,
  zscore,
  steps_since_min,
  steps_since_max,
  prev,
  newest,  // of a selection that another one's point made the rule look at
};

/// Whether it is taken of all points of a window, not of one of them.
constexpr bool ringed(Kind kind) { return kind != Kind::prev && kind != Kind::newest; }

/// An expression over points that an aggregate takes.
struct Argument {
  Code code;
  bool boolean = false;
  std::uint32_t ring = 0;  // first word of its values
};

struct Aggregate {
  Kind kind = Kind::count;
  std::uint16_t source = 0;
  std::uint16_t argument = 0;
  double number = 0;         // alpha, q, how many points back
  bool previous = false;     // of the window before
  std::uint32_t offset = 0;  // first word of its own
  std::uint32_t words = 0;
};

/// How the points of one selection lie in memory.
struct Source {
  std::vector<Argument> arguments;
  std::uint32_t capacity = 0;  // points of its rings; 0: it has none
  std::uint32_t marks = 0;     // first word of the steps as marks (marks.h); 0: it has rings of
  std::uint32_t steps = 0;     // steps, whose first word this is,
  std::uint32_t times = 0;     // and of times
  std::uint32_t words = 0;
  std::uint64_t inverse = 0;  // of the capacity, for place()

  /// Where a point lies in its rings: its number modulo the capacity, without a division for the
  /// first 2^32 points (Lemire, Kaser and Kurz, "Faster remainder by direct computation", 2019).
  [[nodiscard]] std::uint64_t place(std::uint64_t number) const noexcept {
    if (number >> 32 != 0) return number % capacity;
    __extension__ using Wide = unsigned __int128;
    return static_cast<std::uint64_t>((Wide{inverse * number} * capacity) >> 64);
  }
};

/// A rule's expressions, compiled together.
struct Formula {
  std::vector<Source> sources;
  std::vector<Aggregate> aggregates;
  struct Fold {
    enum class Kind : std::uint8_t { min, max, mean, std, spread, count };
    Kind kind = Kind::min;
    Code code;
  };
  std::vector<Fold> folds;
  /// fired("rule", 50 steps)
  struct Hearing {
    std::size_t which = 0;   // of Program::follows
    std::int64_t steps = 0;  // 0: ever
  };
  std::vector<Hearing> hearings;
  std::vector<Code> others;  // other("run", x): what is computed of x in the other run
  Window window;
  bool stepless = false;  // its points have times only
  bool doubled = false;   // some aggregate looks at the window before
  Code when;

  [[nodiscard]] bool paned() const noexcept {
    return window.kind == Window::Kind::every || window.kind == Window::Kind::session;
  }
  /// Judged at the ends of pieces of the window's axis, not at every point.
  [[nodiscard]] bool cut() const noexcept { return paned() || window.hop.has_value(); }
  [[nodiscard]] bool slides() const noexcept { return window.kind == Window::Kind::last; }
};

/// Gives every source and aggregate its place.
void lay_out(Formula& formula);
/// A memory without points: `words` of the source.
void begin(const Formula& formula, std::uint16_t source, std::uint64_t* memory);

/// Whether `point` ends a piece that is to be judged before it is added. Steps that go back begin
/// the memory anew.
bool arrives(const Formula& formula, std::uint16_t source, std::uint64_t* memory,
             const Point& point);
/// Of several memories that are judged together: whether the point lies beyond the open piece, and whether
/// its step is the last of it.
bool beyond(const Formula& formula, const std::uint64_t* memory, const Point& point);
bool completes(const Formula& formula, const std::uint64_t* memory, const Point& point);
/// The open piece is to be judged, whether the point that has ended it is of this memory or not.
void close(const Formula& formula, std::uint16_t source, std::uint64_t* memory);
/// Begins the next piece, once the one that has ended is judged.
void turn(const Formula& formula, std::uint16_t source, std::uint64_t* memory);
/// Adds a point; true: the rule is to be judged with it. `judged`: this point has ended a piece.
bool add(const Formula& formula, std::uint16_t source, std::uint64_t* memory, const Point& point,
         bool judged);
/// End of the piece that is open: of a session its newest point.
std::int64_t piece_over(const Formula& formula, const std::uint64_t* memory);
/// Whether there is a piece to judge.
bool open(const Formula& formula, const std::uint64_t* memory);

/// NaN: not known, for instance because the window is not filled yet.
double aggregate(const Sight& sight, std::uint16_t index);
/// The window that was judged last: its first step and its number of points.
struct Span {
  std::int64_t first_step = 0;
  std::uint64_t points = 1;
};
Span span_of(const Formula& formula, std::uint16_t source, const std::uint64_t* memory,
             std::int64_t step);

}  // namespace tocsin::rules::declared
