// Rows whose units stand side by side may be judged together: the same as one by one, whatever is in
// them. And which rows those are.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <random>
#include <string>
#include <tuple>
#include <vector>

#include "rules/engine/memory/picks.h"
#include "rules/engine/memory/workers.h"
#include "tests/unit/rules/rule_bench.h"

namespace tocsin::rules {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

constexpr std::uint32_t kTogether = 40;
constexpr std::uint32_t kBefore = 5;  // units of the roster before those of the frame

/// Columns of a frame whose rows are mostly fine.
class Frame {
 public:
  Frame(std::mt19937_64& random, bool troubled) : random_(random) {
    std::vector<core::SummaryRow> rows;
    for (std::uint32_t i = 0; i < kTogether; ++i) rows.push_back(row(i, troubled && one_in(6)));
    for (std::size_t k = 0; k < core::summary_column::columns; ++k) {
      for (const core::SummaryRow& each : rows) {
        bytes_.append(reinterpret_cast<const char*>(&each) + k * core::kColumnBytes,
                      core::kColumnBytes);
      }
    }
  }
  [[nodiscard]] const std::byte* columns() const {
    return reinterpret_cast<const std::byte*>(bytes_.data());
  }

 private:
  bool one_in(unsigned many) { return random_() % many == 0; }

  core::SummaryRow row(std::uint32_t number, bool trouble) {
    std::normal_distribution<double> noise(0, 1);
    core::SummaryRow out;
    out.name = number + 1;
    out.count = one_in(3) ? 1 + random_() % 100 : 50;
    out.zero = random_() % (out.count / 3 + 1);
    out.sum = noise(random_);
    out.abs_sum = std::fabs(noise(random_));
    out.sumsq = out.m2 = std::fabs(noise(random_));
    out.min = -std::fabs(noise(random_));
    out.max = std::fabs(noise(random_));
    core::Dtype dtype = core::Dtype::f32;
    std::uint64_t flags = 0;
    if (trouble) {
      switch (random_() % 16) {
        case 0:
          out.nan = out.count;
          out.min = out.max = std::nan("");
          break;
        case 1:
          out.posinf = 1;
          out.max = HUGE_VAL;
          break;
        case 2:
          out.count = 0;
          break;
        case 3:
          dtype = core::Dtype::i32;
          break;
        case 4:
          dtype = core::Dtype::unknown;
          break;
        case 5:
          flags = core::meta::kOptimizerSkipped;
          break;
        case 6:
          out.zero = out.count;
          break;
        case 7:
          out.min = std::nan("");
          break;
        case 8:
          out.abs_sum = one_in(2) ? std::nan("") : -std::nan("");
          break;
        case 9:
          out.abs_sum = one_in(2) ? HUGE_VAL : 1e300;
          break;
        case 10:
          out.abs_sum = one_in(2) ? 0 : -0.0;
          break;
        case 11:
          out.abs_sum = 1e-13;
          break;
        case 12:
          out.count = std::uint64_t{1} << (52 + random_() % 12);
          break;
        case 13:
          flags = core::meta::kNotTrainable;
          break;
        case 14:
          out.zero = std::uint64_t{1} << (52 + random_() % 12);
          break;
        default:
          out.neginf = out.count;
          break;
      }
    }
    out.meta = core::meta::make(dtype, one_in(2) ? core::Role::gradient : core::Role::input, flags);
    return out;
  }

  std::mt19937_64& random_;
  std::string bytes_;
};

/// What judging a frame led to.
struct Answer {
  std::vector<std::byte> states;
  EvaluationCounts counts{};
  std::vector<std::tuple<std::uint32_t, std::uint32_t, EvaluationOutcome, std::uint8_t>> noted;
  friend bool operator==(const Answer&, const Answer&) = default;
};

Answer judged(const RowProgram& rule, const Frame& frame, std::int64_t step,
              const std::vector<std::uint32_t>& rows, const std::vector<Life>& lives,
              std::vector<std::byte> states, bool side_by_side) {
  std::vector<std::uint32_t> slots;
  for (std::uint32_t i = 0; i < kTogether; ++i) slots.push_back(kBefore + i);
  RowBatch batch;
  batch.columns = frame.columns();
  batch.rows = kTogether;
  batch.slots = slots;
  batch.first = side_by_side ? kBefore : RowBatch::kSkip;
  const std::vector<std::uint64_t> shapes(kBefore + kTogether);
  if (side_by_side) batch.shapes = shapes;  // else rules ask for each
  batch.mode = core::Mode::train;
  batch.step = step;
  if (step % 3 == 0) batch.loss_scale = step % 2 == 0 ? 65536 : 0.5;
  std::vector<RowHit> noted;
  Answer out;
  out.states = std::move(states);
  rule.judge(batch, rows, out.states.data(), lives.data(), noted, out.counts);
  for (const RowHit& one : noted) {
    out.noted.emplace_back(one.slot, one.row, one.verdict.outcome, one.verdict.kinds);
  }
  return out;
}

class RowsTogether : public testing::TestWithParam<std::pair<const char*, const char*>> {};

TEST_P(RowsTogether, AreJudgedAsOneByOne) {
  const auto& [name, with] = GetParam();
  const auto program = bench_program(name, with, "tocsin");
  const auto* rule = dynamic_cast<const RowProgram*>(program.get());
  ASSERT_NE(rule, nullptr);
  std::mt19937_64 random(7);
  std::vector<std::byte> states((kBefore + kTogether) * rule->state_bytes());
  for (std::size_t i = 0; i < kBefore + kTogether; ++i) {
    rule->init(states.data() + i * rule->state_bytes());
  }
  std::size_t quiet = 0;
  for (std::int64_t step = 0; step < 300; ++step) {
    const Frame frame(random, random() % 2 == 0);
    std::vector<Life> lives(kBefore + kTogether);
    if (random() % 8 == 0) lives[random() % lives.size()].open = 1;
    if (random() % 8 == 0) lives[random() % lives.size()].hits = 2;
    if (random() % 8 == 0) lives[random() % lives.size()].oks = 2;  // no longer under way
    std::vector<std::uint32_t> rows;
    const auto from = static_cast<std::uint32_t>(random() % 3 == 0 ? random() % 10 : 0);
    const bool gaps = random() % 4 == 0;
    for (std::uint32_t i = from; i < kTogether; ++i) {
      if (!gaps || i % 3 != 1) rows.push_back(i);
    }
    const Answer together = judged(*rule, frame, step, rows, lives, states, true);
    const Answer alone = judged(*rule, frame, step, rows, lives, states, false);
    ASSERT_EQ(together, alone) << "step " << step;
    quiet += together.noted.empty() ? 1 : 0;
    states = alone.states;
  }
  EXPECT_GT(quiet, 50U);
  EXPECT_LT(quiet, 290U);
}

INSTANTIATE_TEST_SUITE_P(
    Rules, RowsTogether,
    testing::Values(std::pair{"exploding_tensor", "{}"},
                    std::pair{"exploding_tensor", "{only_nan: true, ignore_skipped_steps: false}"},
                    std::pair{"vanishing_gradient", "{threshold: 0.000001, min_fraction: 0}"},
                    std::pair{"all_zero", "{tensor_regex: '.*', threshold: 50}"},
                    std::pair{"weight_update_ratio", "{large_threshold: 5}"},
                    std::pair{"weight_update_ratio", "{large_threshold: 5, num_steps: 1}"},
                    std::pair{"all_zero", "{tensor_regex: '.*'}"}),
    [](const auto& one) { return std::to_string(one.index); });

// ── Which rows ─────────────────────────────────────────────────────────────────────────────────

std::vector<std::uint32_t> picked(const std::vector<Match>& answers,
                                  const std::vector<std::uint32_t>& units, std::uint32_t first) {
  Picks picks;
  picks.find(answers);
  std::vector<std::uint32_t> out = {99, 99, 99, 99, 99, 99, 99};  // of the frame before
  picks.rows(units, first, answers, out);
  return out;
}

TEST(Picks, AreTheRowsOfUnitsThatTheRuleLooksAt) {
  constexpr Match kYes = Match::yes;
  constexpr Match kNo = Match::no;
  const std::vector<Match> some = {kYes, kNo, kYes, Match::unknown, kYes, kYes, kNo};
  EXPECT_THAT(picked(some, {1, 2, 3, 4}, 1), ElementsAre(1, 3));
  EXPECT_THAT(picked(some, {0, 1, 2, 3, 4, 5, 6}, 0), ElementsAre(0, 2, 4, 5));
  EXPECT_THAT(picked(some, {5, 6}, 5), ElementsAre(0));
  EXPECT_THAT(picked(some, {6}, 6), IsEmpty());
  EXPECT_THAT(picked(some, {4}, 4), ElementsAre(0));
  // In another order, with one that found no room.
  EXPECT_THAT(picked(some, {5, 1, RowBatch::kSkip, 0}, RowBatch::kSkip), ElementsAre(0, 3));
  const std::vector<Match> all(5, kYes);
  EXPECT_THAT(picked(all, {2, 3, 4}, 2), ElementsAre(0, 1, 2));
  const std::vector<Match> none(5, kNo);
  EXPECT_THAT(picked(none, {2, 3, 4}, 2), IsEmpty());
}

TEST(Picks, GrowWithTheUnits) {
  Picks picks;
  EXPECT_TRUE(picks.empty());
  picks.add(1);
  picks.add(4);
  std::vector<std::uint32_t> out;
  picks.rows(std::vector<std::uint32_t>{3, 4}, 3,
             std::vector<Match>{Match::no, Match::yes, Match::no, Match::no, Match::yes}, out);
  EXPECT_THAT(out, ElementsAre(1));
}

// ── Who sends them ─────────────────────────────────────────────────────────────────────────────

TEST(Workers, AreFoundByNameAndRankWhateverTheirHashesAre) {
  Workers workers;
  const auto add = [&](std::uint64_t name, std::uint32_t rank) {
    Worker worker;
    worker.name_hash = name;
    worker.rank = rank;
    return workers.add(std::move(worker));
  };
  std::mt19937_64 random(3);
  std::vector<std::pair<std::uint64_t, std::uint32_t>> all;
  for (std::uint32_t rank = 0; rank < 500; ++rank) all.emplace_back(random(), rank);
  // Whoever writes frames chooses the hashes: the same key by another name and rank.
  for (std::uint32_t rank = 0; rank < 50; ++rank) {
    const std::uint64_t both = std::uint64_t{rank} << 32 | rank;
    const std::uint64_t other = std::uint64_t{rank + 1000} << 32 | (rank + 1000);
    all.emplace_back(all[rank].first ^ both ^ other, rank + 1000);
  }
  for (std::uint32_t i = 0; i < all.size(); ++i) {
    EXPECT_EQ(workers.find(all[i].first, all[i].second), Workers::kNone);
    EXPECT_EQ(add(all[i].first, all[i].second), i);
  }
  for (std::uint32_t i = 0; i < all.size(); ++i) {
    EXPECT_EQ(workers.find(all[i].first, all[i].second), i);
    EXPECT_EQ(workers.find(all[i].first, all[i].second + 5000), Workers::kNone);
  }
}

}  // namespace
}  // namespace tocsin::rules
