// Rules that compare runs, where the two lie in different partitions: one engine reads the run that
// others are compared with and says what it keeps, another one learns it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/unit/rules/state_topic.h"

namespace tocsin::rules {
namespace {

using namespace stories;  // NOLINT: the stories are this file's language
using ::testing::HasSubstr;
using ::testing::IsEmpty;

const std::string kOther = core::to_text(core::run_uid_for("digits", "other"));
const std::string kSimilar =
    "  - {use: similar_across_runs, name: r, with: {other_trials: " + kOther +
    ", collection_names: [weights, losses]}}";
const std::string kDeclared =
    "  - {name: r, select: 'metric(\"loss\")', clear_after: 1, when: "
    "'value > 1.5 * other(\"" +
    kOther + "\", value)'}";

EngineOptions sharing() {
  EngineOptions options;
  options.shares_comparisons = true;
  return options;
}

/// Two engines, each with the run of its partition.
struct Partitions {
  RuleHarness there;
  RuleHarness here;
  FakeWorker other{"digits", "other"};
  FakeWorker run{"digits", "run"};
  std::size_t learned = 0;

  explicit Partitions(const std::string& rules)
      : there(read_rules_text(rules).config, sharing()),
        here(read_rules_text(rules).config, sharing()) {
    for (auto [engine, worker] : {std::pair{&there, &other}, {&here, &run}}) {
      engine->feed(worker->start());
      engine->feed(worker->dictionary({{core::DictionaryType::tensor, "w", Role::weight},
                                       {core::DictionaryType::scalar, "loss", Role::loss}}));
    }
  }
  static void step(RuleHarness& engine, FakeWorker& worker, std::int64_t step, double value) {
    engine.feed(worker.tensors(Mode::train, step, {{"w", {value, 1}, Role::weight}}));
    engine.feed(worker.scalars(Mode::train, {{"loss", step, value}}));
    engine.feed(worker.step_end(Mode::train, step));
  }
  void step_there(std::int64_t number, double value) { step(there, other, number, value); }
  void step_here(std::int64_t number, double value) { step(here, run, number, value); }
  /// What was said there since comes here.
  void learn() {
    const std::vector<Comparison>& said = there.comparisons();
    for (; learned < said.size(); ++learned) {
      here.engine().learn(3, said[learned], core::wall_time(kStart));
    }
  }
  std::vector<std::int64_t> raised() {
    std::vector<std::int64_t> out;
    for (const core::Issue& issue : here.firing()) out.push_back(issue.step.value_or(-1));
    return out;
  }
  core::RuleStatusEvent status() {
    core::RuleStatusEvent newest;
    for (const Event& event : here.events()) {
      if (const auto* one = std::get_if<core::RuleStatusEvent>(&event)) newest = *one;
    }
    return newest;
  }
};

TEST(Comparisons, WhatIsSaidElsewhereIsLearned) {
  for (const std::string& rules : {kSimilar, kDeclared}) {
    Partitions parts(rules);
    parts.step_there(0, 1);
    parts.step_there(1, 1);
    EXPECT_FALSE(parts.here.engine().compares(7)) << "nothing is known of this partition";
    EXPECT_TRUE(parts.here.engine().compares(3));
    parts.step_here(0, 1);
    parts.step_here(1, 2);
    EXPECT_THAT(parts.raised(), IsEmpty());
    parts.learn();
    ASSERT_FALSE(parts.raised().empty()) << rules;
    for (const std::int64_t step : parts.raised()) EXPECT_EQ(step, 1);
    EXPECT_THAT(parts.here.firing()[0].summary, HasSubstr(rules == kSimilar ? kOther : "other("));
    EXPECT_EQ(parts.here.engine().stats().comparisons_learned, 2U);
    EXPECT_EQ(parts.there.engine().stats().comparisons_told, 2U);
    EXPECT_THAT(parts.there.firing(), IsEmpty());
  }
}

TEST(Comparisons, ItDoesNotMatterWhoIsAhead) {
  for (const std::string& rules : {kSimilar, kDeclared}) {
    std::vector<std::vector<std::string>> ids;
    for (const int order : {0, 1, 2}) {
      Partitions parts(rules);
      for (std::int64_t s = 0; s < 4; ++s) {
        if (order != 1) parts.step_there(s, 1);
        if (order == 0) parts.learn();
        parts.step_here(s, s == 2 ? 3 : 1);
      }
      if (order == 1) {
        for (std::int64_t s = 0; s < 4; ++s) parts.step_there(s, 1);
      }
      parts.there.feed(parts.other.end());
      parts.learn();
      parts.here.feed(parts.run.end());
      ids.push_back(parts.here.ids());
      EXPECT_FALSE(parts.raised().empty());
      EXPECT_EQ(parts.status().status, core::RuleState::issues_found);
    }
    EXPECT_EQ(ids[0], ids[1]);
    EXPECT_EQ(ids[0], ids[2]);
  }
}

TEST(Comparisons, WhatIsKnownIsNotLogged) {
  Partitions parts(kSimilar);
  parts.step_there(0, 1);
  parts.step_here(0, 1);
  parts.learn();
  const std::size_t logged = parts.here.log().size();
  parts.learned = 0;
  parts.learn();
  EXPECT_EQ(parts.here.log().size(), logged);
  EXPECT_EQ(parts.here.engine().stats().comparisons_learned, 1U);
}

TEST(Comparisons, OwnRecordsWinOverWhatOthersSay) {
  Partitions parts(kDeclared);
  for (const Comparison& record : std::vector<Comparison>{
           {kOther + "/0000000000000000/x", ""}, {"", ""}, {kOther, std::nullopt}, {"/", "x"}}) {
    parts.here.engine().learn(3, record, core::wall_time(kStart));
  }
  parts.step_there(0, 1);
  parts.here.feed(parts.other.start());  // the run is read here as well
  Partitions::step(parts.here, parts.other, 0, 9);
  parts.step_here(0, 8);
  parts.learn();
  EXPECT_THAT(parts.raised(), IsEmpty());
  EXPECT_EQ(parts.here.engine().stats().comparisons_learned, 0U);
}

TEST(Comparisons, ARunOfWhichNothingIsSeenIsNamed) {
  for (const std::string& rules : {kSimilar, kDeclared}) {
    Partitions parts(rules);
    parts.step_here(0, 1);
    parts.here.feed(parts.run.end());
    EXPECT_EQ(parts.status().status, core::RuleState::no_data);
    EXPECT_THAT(parts.status().reason, HasSubstr("no data was seen of run " + kOther));
  }
}

TEST(Comparisons, TheRunThatOthersAreComparedWithSaysSo) {
  for (const std::string& rules : {kSimilar, kDeclared}) {
    Partitions parts(rules);
    parts.step_there(0, 1);
    parts.there.feed(parts.other.end());
    std::string reason;
    for (const Event& event : parts.there.events()) {
      const auto* one = std::get_if<core::RuleStatusEvent>(&event);
      if (one != nullptr && one->rule == "r") reason = one->reason;
    }
    EXPECT_EQ(reason, "this is the run that all others are compared with");
  }
}

TEST(Comparisons, RunsWithoutACommonStepAreNamed) {
  for (const std::string& rules : {kSimilar, kDeclared}) {
    Partitions parts(rules);
    parts.step_there(0, 1);
    parts.step_here(5, 1);
    parts.there.feed(parts.other.end());
    parts.learn();
    parts.here.feed(parts.run.end());
    EXPECT_THAT(parts.status().reason, HasSubstr("no s"));
  }
}

TEST(Comparisons, WithinOnePartitionNothingIsSaid) {
  RuleHarness alone(kSimilar);
  FakeWorker other("digits", "other");
  alone.feed(other.start());
  alone.feed(other.dictionary({{core::DictionaryType::tensor, "w", Role::weight}}));
  Partitions::step(alone, other, 0, 1);
  EXPECT_THAT(alone.comparisons(), IsEmpty());
}

// Killed between any two records, before or after what was learned was committed: as undisturbed.
TEST(Comparisons, AKillChangesNothing) {
  for (const std::string& rules : {kSimilar, kDeclared}) {
    Partitions parts(rules);
    for (std::int64_t s = 0; s < 4; ++s) parts.step_there(s, 1);
    parts.there.feed(parts.other.end());
    const std::vector<Comparison> said = parts.there.comparisons();
    ASSERT_EQ(said.size(), 5U);
    std::vector<OwnedFrame> frames{
        parts.run.start(),
        parts.run.dictionary({{core::DictionaryType::tensor, "w", Role::weight},
                              {core::DictionaryType::scalar, "loss", Role::loss}})};
    for (std::int64_t s = 0; s < 4; ++s) {
      const double value = s % 2 == 0 ? 1 : 4;
      frames.push_back(parts.run.tensors(Mode::train, s, {{"w", {value, 1}, Role::weight}}));
      frames.push_back(parts.run.scalars(Mode::train, {{"loss", s, value}}));
      frames.push_back(parts.run.step_end(Mode::train, s));
    }
    frames.push_back(parts.run.end());
    // The n-th thing said comes behind the frame 2n + 3.
    const auto told = [&](std::size_t kill_at, bool commits, std::size_t budget) {
      StateTopic topic(rules, sharing());
      std::size_t learned = 0;
      bool killed = false;
      while (topic.next() < static_cast<std::int64_t>(frames.size())) {
        const auto i = static_cast<std::size_t>(topic.next());
        topic.feed(frames[i]);
        while (learned < said.size() && 2 * learned + 3 <= i) {
          topic.learn(said[learned++], kStart + static_cast<std::int64_t>(i));
        }
        if (budget > 0) topic.piece(budget);
        if (commits) topic.commit();
        if (i != kill_at || std::exchange(killed, true)) continue;
        topic.restart();
        learned = 0;  // the topic is read from its beginning again
      }
      topic.commit();
      return topic.told();
    };
    const std::vector<std::string> expected = told(1000, true, 0);
    EXPECT_THAT(expected, ::testing::Contains(HasSubstr("firing")));
    for (std::size_t at = 0; at < frames.size(); ++at) {
      for (const std::size_t budget : {std::size_t{0}, std::size_t{300}, kWhole}) {
        EXPECT_EQ(told(at, true, budget), expected) << rules << at << " " << budget;
      }
    }
  }
}

}  // namespace
}  // namespace tocsin::rules
