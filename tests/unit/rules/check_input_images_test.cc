#include <gtest/gtest.h>

#include <cmath>

#include "tests/support/rule_harness.h"

namespace tocsin::rules {
namespace {

using namespace testing_support;  // NOLINT: the harness is this file's language
using core::Mode;
using core::Role;

/// Mean and standard deviation of a channel.
using Moments = std::pair<double, double>;
constexpr double kPixels = 4;  // of one image in one channel

struct Pictures {
  RuleHarness rule;
  FakeWorker worker;
  Mode mode = Mode::train;
  std::int64_t step = 0;

  explicit Pictures(const std::string& with = "{}")
      : rule(RuleHarness::of("check_input_images", with)) {
    using core::DictionaryType;
    rule.feed(worker.dictionary(
        {{DictionaryType::tensor, "images", Role::input, core::Dtype::f32, {250, 2, 2, 2}},
         {DictionaryType::tensor, "last", Role::input, core::Dtype::f32, {250, 2, 2, 3}},
         {DictionaryType::tensor, "gray", Role::input, core::Dtype::u8, {250, 2, 2}},
         {DictionaryType::tensor, "table", Role::input, core::Dtype::f32, {250, 8}},
         {DictionaryType::tensor, "hidden", Role::activation_in, core::Dtype::f32, {250, 2, 2, 2}},
         {DictionaryType::tensor, "my_images", Role::other, core::Dtype::f32, {250, 2, 2, 2}},
         {DictionaryType::tensor,
          "hybridsequential0_input_0",
          Role::other,
          core::Dtype::f32,
          {250, 2, 2, 2}}}));
  }
  static std::vector<Vector> vectors(double images, const std::vector<Moments>& channels) {
    Vector sum{core::VectorStat::channel_sum, 0, {}};
    Vector squares{core::VectorStat::channel_sumsq, 0, {}};
    Vector count{core::VectorStat::channel_count, 0, {}};
    for (const auto& [mean, std] : channels) {
      const double n = images * kPixels;
      sum.values.push_back(n * mean);
      squares.values.push_back(n * (mean * mean + std * std));
      count.values.push_back(n);
    }
    return {sum, squares, count};
  }
  void send(double images, const std::vector<Moments>& channels, const std::string& name = "images",
            Role role = Role::input) {
    const auto elements =
        static_cast<std::uint64_t>(images * kPixels * static_cast<double>(channels.size()));
    send_row(row_of(name, role, elements, 1, 1), vectors(images, channels));
  }
  void send_row(const core::SummaryRow& row, const std::vector<Vector>& vectors = {}) {
    rule.feed(worker.summary(mode, step, {row}, {}, vectors));
    rule.feed(worker.step_end(mode, step++));
  }
  // In a run that trains, an evaluation is over with the next train step or the end.
  std::vector<core::Issue> issues() {
    rule.feed(worker.end());
    return rule.firing();
  }
};

TEST(CheckInputImages, FiresWhenAChannelIsOffAfterEnoughImages) {
  Pictures job;
  job.send(250, {{0, 1}, {3, 1}});
  job.send(249, {{0, 1}, {3, 1}});
  EXPECT_TRUE(job.rule.firing().empty()) << "499 images";
  job.send(1, {{0, 1}, {3, 1}});
  const auto issues = job.issues();
  ASSERT_EQ(issues.size(), 1U);
  EXPECT_EQ(issues[0].kind, "mean");
  EXPECT_EQ(issues[0].step, 2);
  EXPECT_NEAR(issues[0].evidence.observed.value, 3, 1e-12);
  EXPECT_EQ(issues[0].summary,
            "Channel 1 of images has mean 3 over 500 images (limit ±2) at train step 2.");
}

// The background of an image is what most of it is: -1 where points lie in -1 … 1.
TEST(CheckInputImages, TheUsualRangesAreRightWhateverTheBackground) {
  Pictures job;
  job.send(600, {{-0.9, 0.05}, {0.95, 0.05}});
  EXPECT_TRUE(job.issues().empty());
}

TEST(CheckInputImages, TheLimitItselfIsRight) {
  Pictures job("{threshold_mean: 0.25}");
  job.send(500, {{0.25, 1}, {-0.25, 1}});
  EXPECT_TRUE(job.issues().empty());
  EXPECT_EQ(job.rule.rule_state(), "NoIssuesFound");
  Pictures off("{threshold_mean: 0.25}");
  off.send(500, {{0, 1}, {-0.26, 1}});
  EXPECT_EQ(off.issues().size(), 1U);
}

TEST(CheckInputImages, ChannelsThatCancelAreSeen) {
  Pictures job;
  job.send(500, {{5, 1}, {-5, 1}});
  EXPECT_EQ(job.issues().size(), 1U);
}

TEST(CheckInputImages, UnitVarianceIsJudgedOnlyWhenAsked) {
  Pictures silent;
  silent.send(500, {{0, 9}, {0, 1}});
  EXPECT_TRUE(silent.issues().empty());
  Pictures asked("{threshold_std: 0.5}");
  asked.send(500, {{0, 1.6}, {0, 1}});
  const auto issues = asked.issues();
  ASSERT_EQ(issues.size(), 1U);
  EXPECT_EQ(issues[0].kind, "std");
  Pictures narrow("{threshold_std: 0.5}");
  narrow.send(500, {{0, 0.5}, {0, 1.5}});
  EXPECT_TRUE(narrow.issues().empty());
}

TEST(CheckInputImages, RankThreeIsOneChannelAndNeedsOnlyTheColumns) {
  Pictures job;
  core::SummaryRow gray;
  gray.name = core::name_hash("gray");
  gray.count = 2000;
  gray.sum = 2000 * 127;
  gray.sumsq = 2000.0 * 127 * 127;
  gray.meta = core::meta::make(core::Dtype::u8, Role::input);
  job.send_row(gray);
  const auto issues = job.issues();
  ASSERT_EQ(issues.size(), 1U);
  EXPECT_EQ(issues[0].evidence.observed.value, 127);
}

TEST(CheckInputImages, ALowerRankDoesNotApply) {
  Pictures job;
  job.send_row(row_of("table", Role::input, 4000, 1, 1));
  EXPECT_TRUE(job.issues().empty());
  EXPECT_EQ(job.rule.rule_state(), "NoData");
}

TEST(CheckInputImages, TheChannelsMayStandLast) {
  const std::vector<Moments> three{{0, 1}, {0, 1}, {3, 1}};
  Pictures job("{channel: -1}");
  job.send(500, three, "last");
  EXPECT_EQ(job.issues().size(), 1U);
  Pictures wrong;  // axis 1 has two entries, the statistics are of three
  wrong.send(500, three, "last");
  EXPECT_TRUE(wrong.issues().empty());
  EXPECT_EQ(wrong.rule.rule_state(), "NoData");
}

TEST(CheckInputImages, WhatIsMissingOrNotFiniteIsInsufficient) {
  const auto with = [](std::size_t broken, double value) {
    Pictures job;
    auto vectors = Pictures::vectors(500, {{3, 1}, {3, 1}});
    vectors[broken].values[1] = value;
    job.send_row(row_of("images", Role::input, 4000, 1, 1), vectors);
    EXPECT_TRUE(job.issues().empty()) << broken;
    EXPECT_EQ(job.rule.rule_state(), "NoData") << broken;
  };
  with(0, std::nan(""));
  with(1, HUGE_VAL);
  with(2, -1);
  with(2, 0.5);
  Pictures missing;
  missing.send_row(row_of("images", Role::input, 4000, 1, 1));
  EXPECT_TRUE(missing.issues().empty());
  EXPECT_EQ(missing.rule.rule_state(), "NoData");
}

TEST(CheckInputImages, ElementsThatAreNotFiniteAreLeftOutAndCounted) {
  Pictures job;
  core::SummaryRow row = row_of("images", Role::input, 4000, 1, 1);
  row.nan = 7;
  auto vectors = Pictures::vectors(500, {{3, 1}, {3, 1}});
  vectors[2].values[0] -= 7;
  job.send_row(row, vectors);
  const auto issues = job.issues();
  ASSERT_EQ(issues.size(), 1U);
  for (const auto& [name, value] : issues[0].evidence.values) {
    if (name == "non_finite") {
      EXPECT_EQ(core::to_json(value), "7");
    }
  }
}

TEST(CheckInputImages, WorkersAreAddedUpAndModesAreNot) {
  RuleHarness rule = RuleHarness::of("check_input_images");
  FakeWorker zero("digits", "two", 0, 2);
  FakeWorker one("digits", "two", 1, 2);
  rule.feed(zero.dictionary(
      {{core::DictionaryType::tensor, "images", Role::input, core::Dtype::f32, {250, 2, 2, 2}}}));
  const auto send = [&](FakeWorker& worker, Mode mode, std::int64_t step) {
    rule.feed(worker.summary(mode, step, {row_of("images", Role::input, 2000, 1, 1)}, {},
                             Pictures::vectors(250, {{4, 1}, {0, 1}})));
    rule.feed(worker.step_end(mode, step));
  };
  send(one, Mode::predict, 0);
  send(one, Mode::train, 0);
  EXPECT_TRUE(rule.firing().empty());
  send(zero, Mode::train, 0);
  ASSERT_EQ(rule.firing().size(), 1U);
  EXPECT_EQ(rule.firing()[0].labels.get("mode"), "train");
  EXPECT_EQ(rule.firing()[0].labels.get("worker"), "");
}

TEST(CheckInputImages, TheRoleDecidesElseTheName) {
  const std::vector<Moments> off{{9, 1}, {9, 1}};
  for (const auto& [name, role, issues] : std::vector<std::tuple<std::string, Role, std::size_t>>{
           {"images", Role::input, 1},
           {"hybridsequential0_input_0", Role::other, 1},
           {"my_images", Role::other, 0},
           {"hidden", Role::activation_in, 0}}) {
    Pictures job;
    job.send(500, off, name, role);
    EXPECT_EQ(job.issues().size(), issues) << name;
  }
  Pictures chosen("{tensor_regex: ['hidden']}");
  chosen.send(500, off, "hidden", Role::activation_in);
  EXPECT_EQ(chosen.issues().size(), 1U);
}

TEST(CheckInputImages, RefusesWhatCannotBe) {
  for (const char* with : {"{channel: 0}", "{threshold_mean: -1}", "{threshold_samples: 0}",
                           "{threshold_std: -0.1}", "{regex: '('}"}) {
    EXPECT_NE(
        read_rules_text("  - {use: check_input_images, with: " + std::string(with) + "}").errors,
        "")
        << with;
  }
}

}  // namespace
}  // namespace tocsin::rules
