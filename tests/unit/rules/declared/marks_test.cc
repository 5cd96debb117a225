// Windows of steps that keep a bit per step answer as those that keep the step and the time of every point.
#include "rules/declared/marks.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <cstring>
#include <random>
#include <set>
#include <vector>

#include "rules/declared/memory.h"

namespace tocsin::rules::declared {
namespace {

constexpr std::array kKinds{Kind::count,
                            Kind::sum,
                            Kind::mean,
                            Kind::min,
                            Kind::max,
                            Kind::std,
                            Kind::first,
                            Kind::last,
                            Kind::delta,
                            Kind::slope,
                            Kind::quantile,
                            Kind::ewma,
                            Kind::zscore,
                            Kind::prev,
                            Kind::steps_since_min,
                            Kind::steps_since_max};

/// Every aggregate of two arguments over the last so many steps; `timed`: one asks for seconds too.
Formula formula_of(std::int64_t steps, bool doubled, bool timed) {
  Formula out;
  out.window.kind = Window::Kind::last;
  out.window.size = {steps, true};
  out.doubled = doubled;
  out.sources.resize(1);
  out.sources[0].arguments.resize(2);
  out.sources[0].arguments[1].boolean = true;
  for (const bool previous : {false, true}) {
    if (previous && !doubled) continue;
    for (const Kind kind : kKinds) {
      if (kind == Kind::prev && previous) continue;
      const double number = kind == Kind::prev ? 2 : 0.3;
      out.aggregates.push_back({kind, 0, 0, number, previous});
    }
    out.aggregates.push_back({Kind::count, 0, 1, 0, previous});
  }
  if (timed) out.aggregates.push_back({Kind::rate, 0, 0, 0, false});
  lay_out(out);
  return out;
}

struct Unit {
  explicit Unit(const Formula& of) : formula(of), words(of.sources[0].words) {
    begin(formula, 0, words.data());
  }
  void add_point(const Point& point) {
    EXPECT_FALSE(arrives(formula, 0, words.data(), point));
    EXPECT_TRUE(add(formula, 0, words.data(), point, false));
  }
  [[nodiscard]] double answer(std::size_t one) const {
    const std::uint64_t* memory = words.data();
    return aggregate({&formula, nullptr, &memory}, static_cast<std::uint16_t>(one));
  }

  const Formula& formula;
  std::vector<std::uint64_t> words;
};

bool same_bits(double a, double b) {
  return (std::isnan(a) && std::isnan(b)) || std::memcmp(&a, &b, sizeof a) == 0;
}

TEST(DeclaredMarks, AnswerAsStepsAndTimesBitForBit) {
  std::mt19937_64 random(7);
  std::size_t known = 0;
  for (int round = 0; round < 600; ++round) {
    constexpr std::array<std::int64_t, 12> kSteps{1, 2, 3, 8, 10, 31, 63, 64, 65, 128, 200, 1024};
    const std::int64_t steps = kSteps[random() % kSteps.size()];
    const bool doubled = steps > 1 && random() % 2 == 0;
    const Formula marked = formula_of(steps, doubled, false);
    const Formula timed = formula_of(steps, doubled, true);
    ASSERT_NE(marked.sources[0].marks, 0U);
    ASSERT_EQ(timed.sources[0].marks, 0U);
    Unit own(marked);
    Unit wide(timed);
    const std::uint64_t longest =
        1 + random() % (random() % 3 == 0 ? 3 * static_cast<std::uint64_t>(steps) : 3);
    std::int64_t step = static_cast<std::int64_t>(random() % 100) - 50;
    for (int i = 0; i < 3 * steps + 40 && i < 700; ++i) {
      step += static_cast<std::int64_t>(1 + random() % longest);
      if (random() % 200 == 0) step += std::int64_t{1} << (random() % 40);
      if (random() % 100 == 0)
        step = static_cast<std::int64_t>(random() % 20);  // begins anew, or goes back
      std::array<double, 2> values{static_cast<double>(random() % 1000) / 7, 0};
      if (random() % 20 == 0) values[0] = random() % 2 == 0 ? std::nan("") : HUGE_VAL;
      values[1] = random() % 5 == 0 ? std::nan("") : static_cast<double>(random() % 2);
      Point point;
      point.step = step;
      point.time = i * 1000;
      point.arguments = values.data();
      own.add_point(point);
      wide.add_point(point);
      for (std::size_t k = 0; k < marked.aggregates.size(); ++k) {
        const double answer = own.answer(k);
        const double expected = wide.answer(k);
        ASSERT_TRUE(same_bits(answer, expected))
            << "window of " << steps << ", step " << step << ", aggregate " << k << ": " << answer
            << ", of all that is kept " << expected;
        if (!std::isnan(answer)) ++known;
      }
      const Span span = span_of(marked, 0, own.words.data(), step);
      const Span whole = span_of(timed, 0, wide.words.data(), step);
      ASSERT_EQ(span.first_step, whole.first_step);
      ASSERT_EQ(span.points, whole.points);
    }
  }
  EXPECT_GT(known, 100'000U);
}

TEST(DeclaredMarks, TellWhichOfTheLatestStepsCame) {
  std::mt19937_64 random(5);
  for (const std::uint32_t capacity : {1U, 8U, 63U, 64U, 65U, 130U, 2048U}) {
    std::vector<std::uint64_t> words(Marks::words(capacity));
    Marks marks(words.data(), capacity);
    std::set<std::int64_t> came;
    std::int64_t step = 0;
    for (int i = 0; i < 400; ++i) {
      const std::uint64_t on =
          random() % 50 == 0 ? 1 + random() % (2 * capacity) : 1 + random() % 3;
      step += static_cast<std::int64_t>(on);
      marks.add(on);
      came.insert(step);
      const auto from = static_cast<std::uint32_t>(random() % capacity);
      const auto to = from + 1 + static_cast<std::uint32_t>(random() % (capacity - from));
      std::vector<std::uint32_t> expected;  // the oldest first
      for (std::uint32_t back = to; back-- > from;) {
        if (came.count(step - back) != 0) expected.push_back(back);
      }
      std::vector<std::uint32_t> seen;
      marks.each(from, to, [&](std::uint32_t back) { seen.push_back(back); });
      ASSERT_EQ(seen, expected) << capacity << ": " << from << " to " << to;
      ASSERT_EQ(marks.count(from, to), expected.size());
      if (!expected.empty()) {
        ASSERT_EQ(marks.oldest(from, to), expected.front());
      }
    }
  }
}

TEST(DeclaredMarks, AWindowOfEightStepsTakesTwelveWords) {
  Formula formula;
  formula.window.kind = Window::Kind::last;
  formula.window.size = {8, true};
  formula.sources.resize(1);
  formula.sources[0].arguments.resize(1);
  formula.aggregates.push_back({Kind::mean, 0, 0, 0, false});
  lay_out(formula);
  EXPECT_EQ(formula.sources[0].words, 12U);
}

}  // namespace
}  // namespace tocsin::rules::declared
