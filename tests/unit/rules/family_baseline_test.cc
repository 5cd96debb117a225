// A family of runs, and one that is unlike it; in one partition, across two, and through a kill.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <functional>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "tests/support/golden.h"
#include "tests/unit/rules/state_topic.h"

namespace tocsin::rules {
namespace {

using namespace stories;  // NOLINT: the stories are this file's language
using ::testing::HasSubstr;
using ::testing::IsEmpty;

const std::string kFamilyRule = "  - {use: family_baseline, name: r, with: {family: [job]}}\n";
const std::string kOfThreeRuns =
    "  - {use: family_baseline, name: r, with: {family: [job], min_runs: 3, points: 2}}\n";

/// Runs of one job, one after the other: their losses fall as 10 / (1 + step) does, times a factor.
struct NightlyRuns {
  std::function<void(const OwnedFrame&)> feed;
  int number = 0;

  /// One whole run of so many steps; it ends if `outcome` says how.
  FakeWorker run(double factor, std::int64_t steps, const std::string& outcome = "completed",
                 const std::string& job = "nightly", double evaluated = 0) {
    FakeWorker worker(job, job + std::to_string(number));
    worker.header.time = kStart + ++number * 3600 * kSecond;
    feed(worker.start(R"(,"job":")" + job + "\""));
    feed(worker.dictionary({{core::DictionaryType::scalar, "loss", Role::loss},
                            {core::DictionaryType::scalar, "accuracy", Role::metric}}));
    for (std::int64_t s = 0; s < steps; ++s) {
      feed(worker.scalars(Mode::train, {{"loss", s, factor * 10 / static_cast<double>(1 + s)}}));
      feed(worker.step_end(Mode::train, s));
      if (evaluated == 0 || s % 5 != 4) continue;
      feed(worker.scalars(Mode::eval, {{"accuracy", s / 5, evaluated, Role::metric}}));
      feed(worker.step_end(Mode::eval, s / 5));
    }
    if (!outcome.empty()) feed(worker.end(outcome));
    return worker;
  }
  void runs(int count, std::int64_t steps = 24) {
    for (int i = 0; i < count; ++i) run(1 + 0.01 * (i % 3), steps);
  }
};

struct OnePartition {
  RuleHarness rule;
  NightlyRuns family;
  explicit OnePartition(const std::string& rules = kFamilyRule, EngineOptions options = {})
      : rule(read_rules_text(rules).config, std::move(options)),
        family{[this](const OwnedFrame& frame) { rule.feed(frame); }} {}
  /// Of this rule: a failed run has an issue of its own.
  std::vector<core::Issue> firing() {
    std::vector<core::Issue> out;
    for (core::Issue& one : rule.firing()) {
      if (one.rule == "r") out.push_back(std::move(one));
    }
    return out;
  }
  core::RuleStatusEvent status() {
    core::RuleStatusEvent newest;
    for (const Event& event : rule.events()) {
      const auto* one = std::get_if<core::RuleStatusEvent>(&event);
      if (one != nullptr && one->rule == "r") newest = *one;
    }
    return newest;
  }
};

TEST(FamilyBaseline, TellsOfARunThatIsUnlikeItsElders) {
  OnePartition all;
  all.family.runs(8);
  EXPECT_THAT(all.firing(), IsEmpty());
  all.family.run(2, 24);
  const auto issues = all.firing();
  ASSERT_EQ(issues.size(), 1U);
  EXPECT_EQ(issues[0].kind, "worse");
  EXPECT_EQ(issues[0].labels.get("metric"), "loss");
  EXPECT_EQ(issues[0].step, 3) << "steps 0 to 2 are over";
  EXPECT_THAT(issues[0].summary, HasSubstr("8 earlier runs"));
  EXPECT_EQ(all.status().status, core::RuleState::issues_found);
}

TEST(FamilyBaseline, SevenRunsAreTooFew) {
  OnePartition all;
  all.family.runs(7);
  all.family.run(100, 24);
  EXPECT_THAT(all.firing(), IsEmpty());
  EXPECT_EQ(all.status().status, core::RuleState::no_data);
  EXPECT_THAT(all.status().reason, HasSubstr("7 earlier runs"));
}

TEST(FamilyBaseline, ALikeRunIsFine) {
  OnePartition all;
  all.family.runs(9);
  EXPECT_THAT(all.firing(), IsEmpty());
  EXPECT_EQ(all.status().status, core::RuleState::no_issues_found);
}

TEST(FamilyBaseline, OnlyCompletedRunsOfTheFamilyCount) {
  OnePartition all;
  for (int i = 0; i < 8; ++i) {
    all.family.run(50, 24, "failed");
    all.family.run(50, 24, "completed", "another");
  }
  all.family.runs(8);
  all.family.run(2, 24);
  EXPECT_EQ(all.firing().size(), 1U);
}

TEST(FamilyBaseline, BetterIsToldOnRequest) {
  for (const bool asked : {false, true}) {
    OnePartition all(
        asked ? "  - {use: family_baseline, name: r, with: {family: [job], better: true}}\n"
              : kFamilyRule);
    all.family.runs(8);
    all.family.run(0.4, 24);
    ASSERT_EQ(all.firing().size(), asked ? 1U : 0U);
    if (!asked) continue;
    EXPECT_EQ(all.firing()[0].kind, "better");
  }
}

TEST(FamilyBaseline, PassesAreJudgedEachAndGrowingMetricsTheOtherWayRound) {
  OnePartition all;
  for (int i = 0; i < 8; ++i) all.family.run(1, 24, "completed", "nightly", 0.9);
  all.family.run(1, 24, "completed", "nightly", 0.95);
  EXPECT_THAT(all.firing(), IsEmpty());
  all.family.run(1, 24, "completed", "nightly", 0.5);
  const auto issues = all.firing();
  ASSERT_EQ(issues.size(), 1U);
  EXPECT_EQ(issues[0].labels.get("mode"), "eval");
  EXPECT_EQ(issues[0].kind, "worse");
  EXPECT_EQ(issues[0].step, 2) << "the third pass";
}

TEST(FamilyBaseline, AfterADriftTheNewerRunsAreTheMeasure) {
  OnePartition all(kOfThreeRuns);
  for (int i = 0; i < 3; ++i) all.family.run(1 + 0.01 * i, 24);
  for (int i = 0; i < 3; ++i)
    all.family.run(3 + 0.03 * i, 24);  // each an issue, and then the usual
  const std::size_t before = all.firing().size();
  EXPECT_GT(before, 0U);
  all.family.run(3.03, 24);
  EXPECT_EQ(all.firing().size(), before);
  all.family.run(9, 24);
  ASSERT_EQ(all.firing().size(), before + 1);
  EXPECT_THAT(all.firing().back().description, HasSubstr("3 older runs do not count"));
}

TEST(FamilyBaseline, ARunKnowsThoseThatEndedBeforeItBegan) {
  OnePartition all(kOfThreeRuns);
  FakeWorker early("nightly", "early");
  early.header.time = kStart;  // before all others
  all.rule.feed(early.start());
  all.rule.feed(early.dictionary({{core::DictionaryType::scalar, "loss", Role::loss}}));
  all.rule.feed(early.scalars(Mode::train, {{"loss", 0, 10}}));
  all.rule.feed(early.step_end(Mode::train, 0));
  all.family.runs(5);
  for (std::int64_t s = 1; s < 12; ++s) {
    all.rule.feed(early.scalars(Mode::train, {{"loss", s, 1000}}));
    all.rule.feed(early.step_end(Mode::train, s));
  }
  EXPECT_THAT(all.firing(), IsEmpty());
}

TEST(FamilyBaseline, OtherPartitionsHearOfIt) {
  EngineOptions sharing;
  sharing.shares_comparisons = true;
  OnePartition there(kFamilyRule, sharing);
  OnePartition here("  - {use: family_baseline, name: r, with: {family: [job], z_threshold: 5}}\n",
                    sharing);
  there.family.runs(8);
  EXPECT_EQ(there.rule.comparisons().size(), 8U);
  here.family.number = 20;
  const auto learn = [&] {
    for (const Comparison& said : there.rule.comparisons()) {
      here.rule.engine().learn(3, said, core::wall_time(kStart));
    }
  };
  learn();
  EXPECT_EQ(here.rule.engine().stats().comparisons_learned, 0U) << "nobody here is of that family";
  FakeWorker run = here.family.run(3, 1, "");
  const std::uint64_t wanted = here.rule.engine().compares(3);
  EXPECT_NE(wanted, 0U);
  learn();
  learn();
  EXPECT_EQ(here.rule.engine().stats().comparisons_learned, 8U)
      << "other thresholds, the same past";
  for (std::int64_t s = 1; s < 6; ++s) {
    here.rule.feed(run.scalars(Mode::train, {{"loss", s, 30.0 / static_cast<double>(1 + s)}}));
    here.rule.feed(run.step_end(Mode::train, s));
  }
  EXPECT_EQ(here.firing().size(), 1U);
  here.family.run(1, 1, "", "another");
  EXPECT_NE(here.rule.engine().compares(3), wanted) << "what was of no use may be now";
}

TEST(FamilyBaseline, TheOldestOf32MakesRoom) {
  EngineOptions sharing;
  sharing.shares_comparisons = true;
  OnePartition all(kFamilyRule, sharing);
  all.family.runs(33, 3);
  std::vector<std::string> gone;
  for (const Comparison& said : all.rule.comparisons()) {
    if (!said.value) gone.push_back(said.key);
  }
  ASSERT_EQ(gone.size(), 1U);
  EXPECT_THAT(gone[0], HasSubstr(core::to_text(core::run_uid_for("nightly", "nightly0"))));
}

TEST(FamilyBaseline, SurvivesAKill) {
  std::vector<std::vector<std::string>> told;
  for (const bool killed : {false, true}) {
    StateTopic topic(kFamilyRule);
    NightlyRuns family{[&](const OwnedFrame& frame) { topic.feed(frame); }};
    family.runs(8);
    topic.commit();
    if (killed) {
      while (topic.piece(1 << 20)) topic.commit();
      topic.commit();
      topic.restart();
    }
    family.run(2, 6, "");
    topic.commit();
    if (killed) topic.restart();
    family.run(2, 6, "");
    topic.commit();
    told.push_back(topic.told());
  }
  EXPECT_THAT(told[0], ::testing::Contains(HasSubstr("earlier runs of this family")));
  EXPECT_EQ(told[0], told[1]);
}

TEST(FamilyBaseline, SurvivesAKillWhileASnapshotIsWritten) {
  std::vector<std::vector<std::string>> told;
  for (const bool killed : {false, true}) {
    StateTopic topic(kOfThreeRuns);
    NightlyRuns family{[&](const OwnedFrame& frame) { topic.feed(frame); }};
    family.runs(4, 6);
    topic.commit();
    if (killed) {
      while (topic.piece(1 << 20)) topic.commit();
      topic.commit();
    }
    family.runs(2, 6);
    topic.commit();
    if (killed) {
      ASSERT_TRUE(topic.piece(1)) << "the family is due";
    }
    family.run(3, 6);  // of this the snapshot under way knows nothing
    topic.commit();
    if (killed) {
      while (topic.piece(64)) topic.commit();
      topic.commit();
      topic.restart();
    }
    family.run(2, 6, "");
    topic.commit();
    told.push_back(topic.told());
  }
  EXPECT_THAT(told[0], ::testing::Contains(HasSubstr("7 earlier runs of this family")));
  EXPECT_EQ(told[0], told[1]);
}

TEST(FamilyBaseline, AFamilyIsOfNoUseWithoutItsRule) {
  const std::string another = "  - {use: all_zero, name: z}\n";
  for (const bool killed : {false, true}) {
    StateTopic topic(kOfThreeRuns + another);
    NightlyRuns family{[&](const OwnedFrame& frame) { topic.feed(frame); }};
    family.runs(3, 6);
    topic.commit();
    EXPECT_EQ(topic.engine().stats().runs, 4U) << "a family takes the room of a run";
    topic.reload(another);
    EXPECT_EQ(topic.engine().stats().runs, 3U);
    topic.commit();
    while (topic.piece(1 << 20)) topic.commit();
    topic.commit();
    if (killed) topic.restart();
    topic.reload(kOfThreeRuns + another);
    family.run(2, 6);
    topic.commit();
    EXPECT_THAT(issues_of(topic.told()), IsEmpty()) << "nothing is known any more";
    family.runs(3, 6);
    topic.commit();
    if (killed) topic.restart();
    family.run(9, 6, "");
    topic.commit();
    EXPECT_THAT(issues_of(topic.told()),
                ::testing::Contains(HasSubstr("4 earlier runs of this family")));
  }
}

std::string family_text(const std::map<std::string, std::string>& state) {
  std::string out;
  for (const auto& [key, value] : state) {
    out += (out.empty() ? "" : "\n") + key + ' ';
    for (const unsigned char byte : value) {
      char digits[3];
      std::snprintf(digits, sizeof digits, "%02x", byte);
      out += digits;
    }
  }
  return out;
}

std::map<std::string, std::string> family_state(const std::string& text) {
  std::map<std::string, std::string> out;
  std::istringstream lines(text);
  for (std::string key, digits; lines >> key >> digits;) {
    std::string& value = out[key];
    for (std::size_t i = 0; i + 1 < digits.size(); i += 2) {
      value += static_cast<char>(std::stoi(digits.substr(i, 2), nullptr, 16));
    }
  }
  return out;
}

// Written when a family was a run that nobody is. Another layout of runs, or another version of the rule,
// is no state of ours any more: then the file is written anew.
TEST(FamilyBaseline, AnEarlierProgramsFamilyIsKnown) {
  StateTopic topic(kOfThreeRuns);
  NightlyRuns family{[&](const OwnedFrame& frame) { topic.feed(frame); }};
  for (int i = 0; i < 3; ++i) family.run(1 + 0.01 * i, 6);
  topic.commit();
  while (topic.piece(1 << 20)) topic.commit();
  topic.commit();
  const std::string golden = golden::text("state_family.txt", family_text(topic.state()));
  ASSERT_FALSE(golden.empty());
  topic.state() = family_state(golden);
  topic.restart();
  ASSERT_FALSE(topic.broken());
  EXPECT_EQ(topic.engine().stats().runs, 4U);
  family.run(2, 6, "");
  topic.commit();
  EXPECT_THAT(issues_of(topic.told()),
              ::testing::Contains(HasSubstr("3 earlier runs of this family had 5.05")));
}

TEST(FamilyBaseline, FamiliesByLabelsOfTheRun) {
  const auto read = read_rules_text("  - {use: family_baseline, with: {family: []}}\n");
  EXPECT_THAT(read.errors, HasSubstr("expected at least one name"));
  OnePartition all("  - {use: family_baseline, name: r}\n");
  all.family.runs(9);
  EXPECT_EQ(all.status().status, core::RuleState::no_data);
  EXPECT_EQ(all.status().reason, "the run lacks a label of its family: label recipe");
}

}  // namespace
}  // namespace tocsin::rules
