#include "rules/declared/slide.h"

#include <algorithm>
#include <cmath>

#include "rules/contract/selection.h"
#include "rules/declared/block.h"
#include "rules/declared/head.h"
#include "rules/declared/marks.h"
#include "rules/declared/running.h"

namespace tocsin::rules::declared {
namespace {

bool orders(Op op) { return op >= Op::less && op <= Op::not_equal; }

bool holds(Op op, double a, double b) {
  switch (op) {
    case Op::less:
      return a < b;
    case Op::less_equal:
      return a <= b;
    case Op::greater:
      return a > b;
    case Op::greater_equal:
      return a >= b;
    case Op::equal:
      return a == b;
    default:
      return a != b;
  }
}

}  // namespace

std::optional<Slide> Slide::of(const Formula& formula) {
  const Window& window = formula.window;
  if (!formula.slides() || formula.stepless || formula.cut() || formula.doubled)
    return std::nullopt;
  if (!window.size.steps || formula.sources.size() != 1 || formula.aggregates.size() != 1) {
    return std::nullopt;
  }
  const Source& source = formula.sources[0];
  const Aggregate& one = formula.aggregates[0];
  if (one.kind != Kind::mean || source.capacity < 2 || source.marks == 0 ||
      source.arguments.size() != 1) {
    return std::nullopt;
  }
  const Argument& argument = source.arguments[0];
  if (argument.boolean || !fits_block(argument.code)) return std::nullopt;
  const Code& when = formula.when;
  if (when.size() != 3 || when[0].op != Op::aggregate || when[1].op != Op::constant ||
      !orders(when[2].op) || std::isnan(when[1].number)) {
    return std::nullopt;
  }
  return Slide(formula);
}

Slide::Slide(const Formula& formula)
    : formula_(&formula),
      op_(formula.when[2].op),
      limit_(formula.when[1].number),
      span_(formula.window.size.amount) {}

double Slide::add(std::uint64_t* m, std::int64_t step, double value) const {
  const Source& source = formula_->sources[0];
  if (m[kTotal] > 0 && step <= whole(m[kStep])) begin(*formula_, 0, m);
  const std::uint64_t number = m[kTotal];
  if (number == 0) m[kFirst] = word(step);
  Marks marks(m + source.marks, source.capacity);
  marks.add(word(step) - m[kStep]);
  m[kStep] = word(step);
  m[kTotal] = number + 1;
  std::uint64_t* const values = m + source.arguments[0].ring;
  const std::uint64_t at = source.place(number);
  values[at] = bits(value);
  if (whole(m[kFirst]) > distance(step, span_) + 1) return std::nan("");
  const std::uint64_t points = marks.count(0, source.capacity);
  const std::uint64_t first =
      at + 1 >= points ? at + 1 - points : at + 1 + source.capacity - points;
  const double mean = ring_mean(values, source.capacity, first, points);
  if (std::isnan(mean)) return mean;
  return holds(op_, mean, limit_) ? 1 : 0;
}

}  // namespace tocsin::rules::declared
