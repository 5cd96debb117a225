// Expressions over many rows at once: the same as row by row, whatever stands in them.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <random>
#include <string>
#include <tuple>
#include <vector>

#include "rules/contract/rule.h"
#include "rules/declared/block.h"
#include "rules/declared/memory.h"
#include "tests/support/rule_harness.h"

namespace tocsin::rules::declared {
namespace {

/// Columns of so many rows, of which some hold what is rare.
class Rows {
 public:
  Rows(std::mt19937_64& random, std::size_t count) : random_(random), count_(count) {
    std::vector<core::SummaryRow> rows;
    for (std::size_t i = 0; i < count; ++i) rows.push_back(row(i));
    for (std::size_t k = 0; k < core::summary_column::columns; ++k) {
      for (const core::SummaryRow& each : rows) {
        bytes_.append(reinterpret_cast<const char*>(&each) + k * core::kColumnBytes,
                      core::kColumnBytes);
      }
    }
  }
  [[nodiscard]] RowBatch batch(std::int64_t step) const {
    RowBatch out;
    out.columns = reinterpret_cast<const std::byte*>(bytes_.data());
    out.rows = count_;
    out.mode = core::Mode::train;
    out.step = step;
    out.time = step * 1'000'000'000;
    out.world_size = step % 3 == 0 ? 0 : 4;
    if (step % 2 == 0) out.epoch = 2;
    return out;
  }

 private:
  bool one_in(unsigned many) { return random_() % many == 0; }
  std::uint64_t number() {
    if (one_in(20)) return random_();
    return one_in(3) ? 0 : random_() % 1000;
  }
  double real() {
    switch (random_() % 16) {
      case 0:
        return std::nan("");
      case 1:
        return HUGE_VAL;
      case 2:
        return -HUGE_VAL;
      case 3:
        return 0;
      case 4:
        return -0.0;
      case 5:
        return 1e-320;
      case 6:
        return 1e300;
      default:
        return std::normal_distribution<double>(0, 3)(random_);
    }
  }
  core::SummaryRow row(std::size_t i) {
    core::SummaryRow out;
    out.name = i + 1;
    out.count = number();
    out.sum = real();
    out.sumsq = one_in(8) ? real() : std::fabs(real());
    out.m2 = real();
    out.abs_sum = real();
    out.min = real();
    out.max = real();
    out.nan = one_in(4) ? number() : 0;
    out.posinf = one_in(8) ? number() : 0;
    out.neginf = one_in(8) ? number() : 0;
    out.zero = number();
    out.negative = number();
    out.meta = core::meta::make(core::Dtype::f32, core::Role::gradient);
    return out;
  }

  std::mt19937_64& random_;
  std::size_t count_;
  std::string bytes_;
};

/// A random expression, of any operations that leave one number.
class Expressions {
 public:
  explicit Expressions(std::mt19937_64& random) : random_(random) {}

  Code make() {
    Code out;
    add(out, 1 + random_() % 5);
    return out;
  }

 private:
  void leaf(Code& out) {
    if (random_() % 4 == 0) {
      constexpr double kNumbers[] = {0, 1, 2, -1, 0.5, 1e-7, 100};
      out.push_back({Op::constant, 0, kNumbers[random_() % std::size(kNumbers)]});
      return;
    }
    const std::uint64_t fields = static_cast<std::uint64_t>(Field::abs_std) + 1;
    const bool sent = random_() % 40 == 0;
    out.push_back(
        {Op::field, static_cast<std::uint16_t>(sent ? kSent + 3 : random_() % fields), 0});
  }
  void add(Code& out, std::uint64_t depth) {
    constexpr Op kUnary[] = {Op::negate, Op::invert, Op::absolute, Op::log10, Op::sqrt, Op::finite};
    constexpr Op kBinary[] = {Op::add,       Op::subtract,   Op::multiply,      Op::divide,
                              Op::less,      Op::less_equal, Op::greater,       Op::equal,
                              Op::not_equal, Op::both,       Op::greater_equal, Op::either,
                              Op::least,     Op::greatest};
    if (depth == 0) return leaf(out);
    switch (random_() % 8) {
      case 0:
        return leaf(out);
      case 1:
      case 2:
        add(out, depth - 1);
        out.push_back({kUnary[random_() % std::size(kUnary)], 0, 0});
        return;
      case 3:
        for (int part = 0; part < 3; ++part) add(out, depth - 1);
        out.push_back({Op::choose, 0, 0});
        return;
      default:
        add(out, depth - 1);
        add(out, depth - 1);
        out.push_back({kBinary[random_() % std::size(kBinary)], 0, 0});
    }
  }

  std::mt19937_64& random_;
};

bool same(double a, double b) { return a == b || (std::isnan(a) && std::isnan(b)); }

TEST(DeclaredBlocks, RandomExpressionsAnswerAsRowByRow) {
  std::mt19937_64 random(3);
  std::size_t known = 0;
  std::size_t unknown = 0;
  for (int i = 0; i < 4000; ++i) {
    const Code code = Expressions(random).make();
    if (!fits_block(code)) continue;  // too deep
    const std::size_t count = 1 + random() % 200;
    const Rows rows(random, count);
    const RowBatch batch = rows.batch(i);
    Point point;
    point.batch = &batch;
    point.step = batch.step;
    point.time = batch.time;
    point.world_size = batch.world_size;
    point.epoch = batch.epoch;
    const std::size_t from = random() % count;
    std::vector<double> together(std::min(kBlockRows, count - from));
    run_block(code, point, from, together);
    for (std::size_t k = 0; k < together.size(); ++k) {
      const Row row(batch.columns, batch.rows, from + k);
      point.row = &row;
      const double alone = run(code, Sight{nullptr, &point, nullptr, nullptr});
      ASSERT_TRUE(same(together[k], alone)) << "expression " << i << ", row " << from + k << ": "
                                            << together[k] << ", alone " << alone;
      ++(std::isnan(alone) ? unknown : known);
    }
    point.row = nullptr;
  }
  EXPECT_GT(known, 50'000U);
  EXPECT_GT(unknown, 20'000U);
}

TEST(DeclaredBlocks, WhatRemembersOrIsDeepDoesNotFit) {
  EXPECT_FALSE(fits_block(Code{}));
  EXPECT_FALSE(fits_block(Code{{Op::aggregate, 0, 0}}));
  EXPECT_FALSE(fits_block(Code{{Op::constant, 0, 1}, {Op::hearing, 0, 0}, {Op::both, 0, 0}}));
  Code deep(9, Instruction{Op::constant, 0, 1});
  deep.insert(deep.end(), 8, Instruction{Op::add, 0, 0});
  EXPECT_FALSE(fits_block(deep));
  EXPECT_TRUE(fits_block(Code(deep.begin() + 1, deep.end() - 1)));
}

// ── Rules ──────────────────────────────────────────────────────────────────────────────────────

constexpr std::uint32_t kUnits = 300;

/// What judging a frame led to.
struct Answer {
  std::vector<std::byte> states;
  EvaluationCounts counts{};
  std::vector<std::tuple<std::uint32_t, std::uint32_t, EvaluationOutcome>> noted;
};

/// All of `rows` in one call, or each in a call of its own.
Answer judged(const RowProgram& rule, const RowBatch& batch, const std::vector<std::uint32_t>& rows,
              const std::vector<Life>& lives, std::vector<std::byte> states, bool together) {
  Answer out;
  out.states = std::move(states);
  std::vector<RowHit> noted;
  const std::size_t size = together ? rows.size() : 1;
  for (std::size_t at = 0; at < rows.size(); at += size) {
    rule.judge(batch, std::span(rows).subspan(at, size), out.states.data(), lives.data(), noted,
               out.counts);
  }
  for (const RowHit& one : noted) out.noted.emplace_back(one.slot, one.row, one.verdict.outcome);
  return out;
}

class BlockRules : public testing::TestWithParam<const char*> {};

TEST_P(BlockRules, JudgeRowsTogetherAsEachAlone) {
  const auto read = testing_support::read_rules_text(
      std::string("  - {name: r, select: 'tensor(\".*\")', ") + GetParam() + "}");
  ASSERT_EQ(read.config.rules.size(), 1U) << read.errors;
  const auto* rule = dynamic_cast<const RowProgram*>(read.config.rules.front().program.get());
  ASSERT_NE(rule, nullptr);
  std::mt19937_64 random(11);
  std::vector<std::byte> states(kUnits * rule->state_bytes());
  for (std::size_t i = 0; i < kUnits; ++i) rule->init(states.data() + i * rule->state_bytes());
  std::vector<std::uint32_t> slots;
  for (std::uint32_t i = 0; i < kUnits; ++i) slots.push_back(kUnits - 1 - i);
  EvaluationCounts all{};
  std::int64_t step = 0;
  for (int frame = 0; frame < 120; ++frame) {
    step = random() % 25 == 0 ? 0 : step + 1 + static_cast<std::int64_t>(random() % 3);
    const Rows columns(random, kUnits);
    RowBatch batch = columns.batch(step);
    batch.slots = slots;
    std::vector<Life> lives(kUnits);
    if (random() % 2 == 0) lives[random() % kUnits].open = 1;
    std::vector<std::uint32_t> rows;
    const std::uint64_t every =
        random() % 8 == 0 ? 9 : 1 + random() % 3;  // sparse ones are judged alone
    for (std::uint32_t i = static_cast<std::uint32_t>(random() % 40); i < kUnits; ++i) {
      if (random() % every == 0) rows.push_back(i);
    }
    if (random() % 6 == 0) rows.resize(random() % 5);
    if (rows.empty()) continue;
    const Answer together = judged(*rule, batch, rows, lives, states, true);
    const Answer alone = judged(*rule, batch, rows, lives, states, false);
    ASSERT_EQ(together.counts, alone.counts) << "frame " << frame;
    ASSERT_EQ(together.noted, alone.noted) << "frame " << frame;
    ASSERT_EQ(together.states, alone.states) << "frame " << frame;
    for (std::size_t k = 0; k < all.size(); ++k) all[k] += alone.counts[k];
    states = alone.states;
  }
  EXPECT_GT(all[static_cast<std::size_t>(EvaluationOutcome::ok)], 100U);
  EXPECT_GT(all[static_cast<std::size_t>(EvaluationOutcome::hit)], 20U);
}

INSTANTIATE_TEST_SUITE_P(
    Texts, BlockRules,
    testing::Values("when: 'nan + posinf + neginf > 0'",
                    "when: 'abs_max > 3 and not (zero > count / 2)'",
                    "when: 'if(finite(mean), l2, variance) >= 1 and (epoch == 2 or step > 9)'",
                    "when: 'log10(abs_mean) < -1 or positive > 100'",
                    "when: 'min2(std, abs_std) > 0.5'",
                    "window: last 5 steps, when: 'mean(abs_mean) < 1'",
                    "window: last 5 steps, when: 'mean(l2 / (1 + zero)) > 0.01'",
                    "window: last 8 steps, when: 'l2 > 2 * median(l2)'",
                    "window: last 6 steps, when: 'max(mean) - min(mean) > 1 and zscore(sum) < 1'",
                    "window: last 6 steps, when: 'count(nan > 0) > 1'",
                    "window: last 3 steps, when: 'mean(abs_mean) > 1.5 * previous(mean(abs_mean))'",
                    "window: last 4 steps, when: 'sum(l1) > 2 and mean(l2) < 5 and max(m2) > 0 and "
                    "min(zero) < 9 "
                    "and mean(negative) > 1'",
                    "window: since start, when: 'l2 > 1.5 * mean(l2)'",
                    "window: last 7 steps, when: 'l2 > mean(l2) and max(l2) < 9 or epoch == 3'",
                    "window: since start, when: 'l2 > mean(l2) + 2 * std(l2)'",
                    "window: every 4 steps, when: 'mean(abs_max) > previous(mean(abs_max))'",
                    "window: last 5 steps, when: 'sum(mean) > prev(l2, 1) and mean(mean) > 0'"),
    [](const auto& one) { return "number" + std::to_string(one.index); });

}  // namespace
}  // namespace tocsin::rules::declared
