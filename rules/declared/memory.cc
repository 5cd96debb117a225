#include "rules/declared/memory.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>

#include "rules/contract/selection.h"
#include "rules/declared/head.h"
#include "rules/declared/histogram.h"
#include "rules/declared/marks.h"
#include "rules/declared/running.h"

namespace tocsin::rules::declared {
namespace {

bool by_steps(const Formula& formula) {
  if (formula.stepless) return false;
  if (formula.window.kind == Window::Kind::start) return true;
  return formula.window.kind != Window::Kind::session && formula.window.size.steps;
}

// End of the piece of `every` that a place lies in.
std::int64_t piece_end(std::int64_t place, std::int64_t every) {
  std::int64_t number = place / every;
  if (place % every < 0) --number;
  std::int64_t end = 0;
  return __builtin_mul_overflow(number + 1, every, &end) ? INT64_MAX : end;
}
std::int64_t pace(const Formula& formula) {
  return formula.window.hop ? formula.window.hop->amount : formula.window.size.amount;
}

/// The points of a ring that a window holds.
struct Held {
  std::uint64_t from = 0;
  std::uint64_t to = 0;
};

// The steps of a window that keeps marks, as far as they are behind the newest one.
struct Behind {
  std::uint32_t from = 0;
  std::uint32_t to = 0;
};

Behind behind(const Formula& formula, bool previous) {
  const auto span = static_cast<std::uint32_t>(formula.window.size.amount);
  return previous ? Behind{span, 2 * span} : Behind{0, span};
}

MarksSeen marks_of(const Source& source, const std::uint64_t* m) {
  return {m + source.marks, source.capacity};
}

Held marked(const Formula& formula, const Source& source, const std::uint64_t* m, bool previous) {
  const MarksSeen marks = marks_of(source, m);
  const Behind window = behind(formula, previous);
  const std::uint64_t to = m[kTotal] - (previous ? marks.count(0, window.from) : 0);
  return {to - marks.count(window.from, window.to), to};
}

Held held(const Formula& formula, const Source& source, const std::uint64_t* m, bool previous) {
  if (source.marks != 0) return marked(formula, source, m, previous);
  const std::uint64_t* axis = m + (by_steps(formula) ? source.steps : source.times);
  const std::int64_t span = formula.window.size.amount;
  const std::int64_t end = whole(m[kEnd]);
  std::uint64_t to = m[kTotal];
  // A piece that has ended does not hold the newest points yet; only one can be beyond it.
  while (to > m[kTail] && whole(axis[source.place(to - 1)]) > end) --to;
  std::uint64_t from = m[kTail];
  if (!previous) return {from, to};
  to = from;
  const std::uint64_t oldest = m[kTotal] > source.capacity ? m[kTotal] - source.capacity : 0;
  const std::int64_t begin = distance(distance(end, span), span);
  while (from > oldest && whole(axis[source.place(from - 1)]) > begin) --from;
  return {from, to};
}

void move_tail(const Formula& formula, const Source& source, std::uint64_t* m, std::int64_t end) {
  m[kEnd] = word(end);
  const std::uint64_t* axis = m + (by_steps(formula) ? source.steps : source.times);
  const std::int64_t begin = distance(end, formula.window.size.amount);
  const std::uint64_t oldest = m[kTotal] > source.capacity ? m[kTotal] - source.capacity : 0;
  std::uint64_t tail = std::max(m[kTail], oldest);
  const std::uint64_t total = m[kTotal];
  for (std::uint64_t at = source.place(tail); tail < total && whole(axis[at]) <= begin; ++tail) {
    if (++at == source.capacity) at = 0;
  }
  m[kTail] = tail;
}

// Whether the whole window has been seen, and none of its points had to make room.
bool filled(const Formula& formula, const Source& source, const std::uint64_t* m, bool previous) {
  const std::int64_t span = formula.window.size.amount;
  const bool marked = source.marks != 0;
  std::int64_t begin = distance(whole(m[marked ? kStep : kEnd]), span);
  if (previous) begin = distance(begin, span);
  if (marked) return whole(m[kFirst]) <= begin + 1;
  const bool lost = whole(m[kLost]) != INT64_MIN && whole(m[kLost]) > begin;
  const std::int64_t first = whole(m[kFirst]);
  // A window of steps (s − n, s] begins with step s − n + 1; one of time at its first moment.
  return !lost && (by_steps(formula) ? first <= begin + 1 : first <= begin);
}

double ring_aggregate(const Formula& formula, const Aggregate& one, const Source& source,
                      const std::uint64_t* m) {
  if (source.capacity == 1) {  // one step: nothing but the newest point
    const double x = real(m[source.arguments[one.argument].ring]);
    switch (one.kind) {
      case Kind::count:
        return std::isfinite(x) ? (source.arguments[one.argument].boolean ? x : 1) : 0;
      default:
        return std::isfinite(x) ? x : std::nan("");
    }
  }
  if (!filled(formula, source, m, one.previous)) return std::nan("");
  const Held window = held(formula, source, m, one.previous);
  const Argument& argument = source.arguments[one.argument];
  const std::uint64_t* values = m + argument.ring;
  const std::uint64_t points = window.to - window.from;
  std::uint64_t at = source.place(window.from);
  if (one.kind == Kind::quantile) {
    return exact_quantile(values, source.capacity, at, points, one.number);
  }
  if (one.kind == Kind::mean && !argument.boolean) {
    return ring_mean(values, source.capacity, at, points);
  }
  Running running(one.kind, one.number);
  if (source.marks != 0) {
    const Behind steps = behind(formula, one.previous);
    std::int64_t step = 0;
    marks_of(source, m).each(steps.from, steps.to, [&](std::uint32_t back) {
      step = whole(m[kStep]) - back;
      running.add(real(values[at]), {step, step, 0}, argument.boolean);
      if (++at == source.capacity) at = 0;
    });
    return running.result(step);
  }
  const std::uint64_t* axis = m + (by_steps(formula) ? source.steps : source.times);
  for (std::uint64_t i = window.from; i < window.to; ++i) {
    running.add(real(values[at]),
                {whole(axis[at]), whole(m[source.steps + at]), whole(m[source.times + at])},
                argument.boolean);
    if (++at == source.capacity) at = 0;
  }
  const std::uint64_t newest = window.to == 0 ? 0 : source.place(window.to - 1);
  const std::int64_t step = whole(m[source.steps + newest]);
  return running.result(step);
}

void begin_pieces(const Formula& formula, std::uint16_t source, std::uint64_t* m) {
  for (const Aggregate& one : formula.aggregates) {
    if (one.source != source || one.words == 0 || !ringed(one.kind)) continue;
    const std::uint64_t before = m[one.offset];
    std::memset(m + one.offset, 0, one.words * sizeof(std::uint64_t));
    m[one.offset] = before;
    if (one.kind == Kind::quantile) {
      Histogram::begin(m + one.offset + 1);
    } else {
      Running(one.kind, one.number).store(m + one.offset + 1);
    }
  }
}

double stored_aggregate(const Aggregate& one, const std::uint64_t* m) {
  if (one.kind == Kind::quantile) return Histogram::quantile(m + one.offset + 1, one.number);
  Running running(one.kind, one.number);
  running.load(m + one.offset + 1);
  return running.result(whole(m[kStep]));
}

void add_stored(const Aggregate& one, std::uint64_t* m, double x, const Running::Where& where,
                bool boolean) {
  if (one.kind == Kind::quantile) {
    if (std::isfinite(x)) Histogram::add(m + one.offset + 1, x);
    return;
  }
  Running running(one.kind, one.number);
  running.load(m + one.offset + 1);
  running.add(x, where, boolean);
  running.store(m + one.offset + 1);
}

}  // namespace

void begin(const Formula& formula, std::uint16_t number, std::uint64_t* m) {
  const Source& source = formula.sources[number];
  std::memset(m, 0, source.words * sizeof(std::uint64_t));
  m[kStep] = word(INT64_MIN);
  if (source.marks == 0) {
    m[kTime] = word(INT64_MIN);
    m[kLost] = word(INT64_MIN);
  }
  for (const Aggregate& one : formula.aggregates) {
    if (one.source != number) continue;
    if (one.kind == Kind::prev || one.kind == Kind::newest) {
      std::fill_n(m + one.offset, one.words, bits(std::nan("")));
    } else if (one.words > 0) {
      m[one.offset] = bits(std::nan(""));
    }
  }
  begin_pieces(formula, number, m);
}

bool arrives(const Formula& formula, std::uint16_t number, std::uint64_t* m, const Point& point) {
  const bool stepped = formula.window.kind != Window::Kind::session && by_steps(formula);
  if (stepped && point.step <= whole(m[kStep]) && m[kTotal] > 0) begin(formula, number, m);
  const bool first = m[kTotal] == 0;
  if (formula.sources[number].marks != 0) {
    if (first) m[kFirst] = word(point.step);
    return false;
  }
  // Clocks may step back; the axis does not.
  const std::int64_t time = first ? point.time : std::max(point.time, whole(m[kTime]));
  const std::int64_t place = stepped ? point.step : time;
  if (first) m[kFirst] = word(place);
  if (!formula.cut()) return false;
  if (formula.window.kind == Window::Kind::session) {
    const bool over =
        m[kOpen] != 0 && distance(place, whole(m[kTime])) > formula.window.size.amount;
    if (!over) m[kOpen] = 1;
    return over;
  }
  if (m[kOpen] != 0 && place >= whole(m[kPiece])) {
    const Source& source = formula.sources[number];
    if (source.capacity != 0) move_tail(formula, source, m, whole(m[kPiece]) - 1);
    return true;
  }
  if (m[kOpen] == 0) {
    m[kPiece] = word(piece_end(place, pace(formula)));
    m[kOpen] = 1;
  }
  return false;
}

bool beyond(const Formula& formula, const std::uint64_t* m, const Point& point) {
  const std::int64_t time = std::max(point.time, whole(m[kTime]));
  if (formula.window.kind == Window::Kind::session) {
    return distance(time, whole(m[kTime])) > formula.window.size.amount;
  }
  return (by_steps(formula) ? point.step : time) >= whole(m[kPiece]);
}

bool completes(const Formula& formula, const std::uint64_t* m, const Point& point) {
  return formula.window.kind != Window::Kind::session && by_steps(formula) &&
         point.step == whole(m[kPiece]) - 1;
}

void close(const Formula& formula, std::uint16_t number, std::uint64_t* m) {
  const Source& source = formula.sources[number];
  if (source.capacity != 0) move_tail(formula, source, m, whole(m[kPiece]) - 1);
}

void turn(const Formula& formula, std::uint16_t number, std::uint64_t* m) {
  m[kOpen] = 0;
  if (formula.slides()) return;
  for (const Aggregate& one : formula.aggregates) {
    if (one.source == number && one.words > 0 && ringed(one.kind)) {
      m[one.offset] = bits(stored_aggregate(one, m));
    }
  }
  begin_pieces(formula, number, m);
}

namespace {

/// What the arguments of a source come to at a point.
struct ArgumentValues {
  const Source& source;
  const Point& point;
  const Sight& sight;

  double operator()(std::uint16_t argument) const {
    if (point.arguments != nullptr) return point.arguments[argument];
    const Code& code = source.arguments[argument].code;
    if (code.size() == 1 && code[0].op == Op::field) return field_of(point, code[0].index);
    return run(code, sight);
  }
};

void open_piece(const Formula& formula, std::uint64_t* m, std::int64_t place) {
  if (!formula.cut() || m[kOpen] != 0) return;
  m[kOpen] = 1;
  if (formula.window.kind == Window::Kind::session) return;
  m[kPiece] = word(piece_end(place, pace(formula)));
}

void keep_newest(const Formula& formula, std::uint16_t number, std::uint64_t* m,
                 std::uint64_t total, const ArgumentValues& value_of) {
  for (const Aggregate& one : formula.aggregates) {
    if (one.source != number) continue;
    if (one.kind == Kind::prev) {
      m[one.offset + total % one.words] = bits(value_of(one.argument));
    } else if (one.kind == Kind::newest) {
      m[one.offset] = bits(value_of(one.argument));
    }
  }
}

void keep_in_rings(const Formula& formula, const Source& source, std::uint64_t* m,
                   std::uint64_t total, const Running::Where& where,
                   const ArgumentValues& value_of) {
  const bool marked = source.marks != 0;
  const std::uint64_t at = source.place(total);
  if (!marked) {
    if (total >= source.capacity) {
      m[kLost] = m[(by_steps(formula) ? source.steps : source.times) + at];
    }
    m[source.steps + at] = word(where.step);
    m[source.times + at] = word(where.time);
  }
  std::uint16_t a = 0;
  for (const Argument& argument : source.arguments) {
    if (argument.ring != 0) m[argument.ring + at] = bits(value_of(a));
    ++a;
  }
  if (!marked && !formula.cut()) move_tail(formula, source, m, where.place);
}

void add_to_running(const Formula& formula, std::uint16_t number, std::uint64_t* m,
                    const Running::Where& where, const ArgumentValues& value_of) {
  for (const Aggregate& one : formula.aggregates) {
    if (one.source != number || one.words == 0 || !ringed(one.kind)) continue;
    add_stored(one, m, value_of(one.argument), where,
               value_of.source.arguments[one.argument].boolean);
  }
}

// Whether the piece ends with this step. Of pieces of time one can only know later.
bool ends_piece(const Formula& formula, const std::uint64_t* m, std::int64_t place) {
  return by_steps(formula) && formula.window.kind != Window::Kind::session &&
         place == whole(m[kPiece]) - 1;
}

}  // namespace

bool add(const Formula& formula, std::uint16_t number, std::uint64_t* m, const Point& point,
         bool judged) {
  const Source& source = formula.sources[number];
  const bool marked = source.marks != 0;
  const std::int64_t time =
      marked || m[kTotal] == 0 ? point.time : std::max(point.time, whole(m[kTime]));
  const std::int64_t place = by_steps(formula) ? point.step : time;
  open_piece(formula, m, place);
  if (marked) {
    Marks(m + source.marks, source.capacity).add(word(point.step) - m[kStep]);
  } else {
    m[kTime] = word(time);
  }
  m[kStep] = word(point.step);
  const std::uint64_t total = m[kTotal]++;
  std::array<const std::uint64_t*, kMostSources> memories;  // an argument sees its own alone
  memories.fill(m);
  const Sight sight{&formula, &point, memories.data(), nullptr};
  const ArgumentValues value_of{source, point, sight};
  const Running::Where where{place, point.step, time};
  keep_newest(formula, number, m, total, value_of);  // first: other arguments may look at it
  if (source.capacity != 0) {
    keep_in_rings(formula, source, m, total, where, value_of);
  } else {
    add_to_running(formula, number, m, where, value_of);
  }
  if (!formula.cut()) return true;
  if (judged || !ends_piece(formula, m, place)) return false;
  if (source.capacity != 0) move_tail(formula, source, m, place);
  return true;
}

std::int64_t piece_over(const Formula& formula, const std::uint64_t* m) {
  if (formula.window.kind == Window::Kind::session) return whole(m[kTime]);
  return whole(m[kPiece]);
}

bool open(const Formula& formula, const std::uint64_t* m) { return formula.cut() && m[kOpen] != 0; }

double aggregate(const Sight& sight, std::uint16_t index) {
  const Formula& formula = *sight.formula;
  const Aggregate& one = formula.aggregates[index];
  // Arguments are computed for one source alone, which then is the only memory there is.
  const std::uint64_t* m = sight.memories[one.source];
  if (one.kind == Kind::newest) return real(m[one.offset]);
  if (one.kind == Kind::prev) {
    const auto back = static_cast<std::uint64_t>(one.number);
    if (m[kTotal] <= back) return std::nan("");
    return real(m[one.offset + (m[kTotal] - 1 - back) % one.words]);
  }
  if (m[kTotal] == 0) return std::nan("");
  const Source& source = formula.sources[one.source];
  if (source.capacity != 0) return ring_aggregate(formula, one, source, m);
  return one.previous ? real(m[one.offset]) : stored_aggregate(one, m);
}

Span span_of(const Formula& formula, std::uint16_t number, const std::uint64_t* m,
             std::int64_t step) {
  const Source& source = formula.sources[number];
  if (source.capacity > 1) {
    const Held window = held(formula, source, m, false);
    if (window.from < window.to && source.marks != 0) {
      const Behind steps = behind(formula, false);
      return {whole(m[kStep]) - marks_of(source, m).oldest(steps.from, steps.to),
              window.to - window.from};
    }
    if (window.from < window.to) {
      return {whole(m[source.steps + source.place(window.from)]), window.to - window.from};
    }
  }
  if (formula.window.kind == Window::Kind::start && by_steps(formula) && m[kTotal] > 0) {
    return {whole(m[kFirst]), m[kTotal]};
  }
  return {step, 1};
}

}  // namespace tocsin::rules::declared
