// A snapshot never stops evaluation: pieces are bounded, only what changed is written, and what
// changes while it is under way is written as it was.
#include <gtest/gtest.h>

#include "tests/unit/rules/state_topic.h"

namespace tocsin::rules {
namespace {

using namespace stories;  // NOLINT: the stories are this file's language

constexpr std::size_t kBudget = std::size_t{4} << 20;

std::vector<core::SummaryRow> rows_of(std::size_t from, std::size_t count) {
  std::vector<core::SummaryRow> rows;
  for (std::size_t i = from; i < from + count; ++i) {
    core::SummaryRow row = row_of("t", Role::gradient, 4, 1, 1);
    row.name = 0x9E3779B97F4A7C15ULL * (i + 1);
    rows.push_back(row);
  }
  return rows;
}

TEST(Snapshot, AMillionUnitsAreWrittenInBoundedPiecesWhileTheRunGoesOn) {
  constexpr std::size_t kUnits = 1'000'000;
  constexpr std::size_t kRows = 5000;
  EngineOptions options;
  options.config.max_units_per_run = 2 * kUnits;
  RuleHarness rule("  - exploding_tensor\n  - vanishing_gradient", options);
  FakeWorker worker;
  const auto step = [&](std::int64_t number) {
    for (std::size_t from = 0; from < kUnits; from += kRows) {
      rule.feed(worker.summary(Mode::train, number, rows_of(from, kRows)));
    }
    rule.feed(worker.step_end(Mode::train, number));
  };
  step(0);
  ASSERT_EQ(rule.engine().stats().units, kUnits);
  rule.events();
  std::size_t total = 0;
  std::size_t pieces = 0;
  std::size_t from = 0;
  const auto piece = [&] {
    std::size_t bytes = 0;
    const bool more = rule.engine().snapshot(3, kBudget, [&](const StateRecord& record) {
      const std::size_t size = record.value ? record.value->size() : 0;
      EXPECT_LE(size, std::size_t{1} << 20) << record.key;
      bytes += size;
    });
    EXPECT_LE(bytes, kBudget + (std::size_t{1} << 20));
    total += bytes;
    ++pieces;
    return more;
  };
  while (piece()) {
    // Training goes on between the pieces, at a tenth of the units.
    rule.feed(worker.summary(Mode::train, 1, rows_of(from % kUnits, kRows)));
    rule.events();
    from += kRows;
    ASSERT_LT(pieces, 1000U);
  }
  EXPECT_GT(pieces, 5U);
  EXPECT_EQ(rule.engine().stats().snapshots, 1U);
  const std::size_t whole = total;
  // The next one holds what changed since, and nothing else.
  total = 0;
  while (piece()) {
  }
  const std::size_t changed = from / kRows * kRows;
  EXPECT_LT(total, whole * (changed + 60'000) / kUnits + (std::size_t{64} << 10));
  EXPECT_GT(total, whole * changed / kUnits / 2);
  // And without any change there is none.
  const std::uint64_t before = rule.engine().stats().snapshots;
  EXPECT_FALSE(rule.engine().snapshot(3, kBudget, [](const StateRecord&) { FAIL(); }));
  EXPECT_EQ(rule.engine().stats().snapshots, before);
}

TEST(Snapshot, WaitsUntilWhatItStandsForIsTaken) {
  RuleHarness rule = RuleHarness::of("exploding_tensor");
  FakeWorker worker;
  rule.feed(worker.start());
  std::size_t records = 0;
  EXPECT_TRUE(rule.engine().snapshot(3, kBudget, [&](const StateRecord&) { ++records; }));
  EXPECT_EQ(records, 0U);
  rule.events();
  while (rule.engine().snapshot(3, kBudget, [&](const StateRecord&) { ++records; })) {
  }
  EXPECT_GT(records, 0U);
}

TEST(Snapshot, APartitionThatIsTakenAwayTakesOnlyItsOwnOutput) {
  RuleHarness rule = RuleHarness::of("exploding_tensor");
  FakeWorker worker;
  const OwnedFrame bad = worker.tensors(Mode::train, 0, {{"t", {std::nan("")}}});
  const core::WallTime time = core::wall_time(kStart);
  rule.engine().on_frame(bad.view(), bad.decoded(),
                         {"tocsin.telemetry.v1", "telemetry", 3, 0, time}, time);
  rule.engine().on_frame(bad.view(), bad.decoded(),
                         {"tocsin.telemetry.v1", "telemetry", 4, 0, time}, time);
  EXPECT_EQ(rule.engine().pending(), (std::vector<std::int32_t>{3, 4}));
  rule.engine().drop(3);
  EXPECT_EQ(rule.engine().pending(), (std::vector<std::int32_t>{4}));
  EXPECT_TRUE(rule.engine().take(3).empty());
  EXPECT_FALSE(rule.engine().take(4).empty());
}

}  // namespace
}  // namespace tocsin::rules
