// Rules over rules: one after another, one and not another, and conditions that ask what hit before.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "core/episode.h"
#include "tests/support/rule_harness.h"

namespace tocsin::rules {
namespace {

using namespace testing_support;  // NOLINT: the harness is this file's language
using core::Mode;
using core::Role;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

const std::string kParts =
    "  - {name: a, select: 'metric(\"a\")', when: 'value > 0', clear_after: 1}\n"
    "  - {name: b, select: 'metric(\"b\")', when: 'value > 0', clear_after: 1}\n"
    "  - {name: c, select: 'metric(\"c\")', when: 'value > 0', clear_after: 1}\n";

/// Workers that say at which of their steps which of the metrics a, b, c are above 0.
struct Story {
  RuleHarness rule;
  std::vector<FakeWorker> workers;

  explicit Story(const std::string& rules, std::uint32_t size = 1) : rule(kParts + rules) {
    for (std::uint32_t rank = 0; rank < size; ++rank) {
      workers.emplace_back("digits", "exploding", rank, size);
      rule.feed(workers.back().dictionary(
          {{core::DictionaryType::worker, "worker_" + std::to_string(rank)},
           {core::DictionaryType::scalar, "a", Role::metric},
           {core::DictionaryType::scalar, "b", Role::metric},
           {core::DictionaryType::scalar, "c", Role::metric},
           {core::DictionaryType::scalar, "x", Role::metric}}));
    }
  }
  void says(std::size_t worker, Mode mode, std::int64_t step, const std::string& high) {
    std::vector<Scalar> scalars;
    for (const char* name : {"a", "b", "c", "x"}) {
      scalars.push_back(
          {name, step, high.find(name[0]) == std::string::npos ? 0.0 : 1.0, Role::metric});
    }
    rule.feed(workers[worker].scalars(mode, scalars));
    rule.feed(workers[worker].step_end(mode, step));
  }
  /// One text per training step of the only worker.
  void trains(const std::vector<std::string>& steps) {
    for (std::size_t s = 0; s < steps.size(); ++s) {
      says(0, Mode::train, static_cast<std::int64_t>(s), steps[s]);
    }
  }
  /// Steps at which the rule `s` was raised.
  std::vector<std::int64_t> raised() { return steps(rule.firing()); }
  std::vector<std::int64_t> ended() { return steps(rule.resolved()); }
  core::Issue first() {
    for (const core::Issue& issue : rule.firing()) {
      if (issue.rule == "s") return issue;
    }
    ADD_FAILURE() << "no issue of s";
    return {};
  }

 private:
  static std::vector<std::int64_t> steps(const std::vector<core::Issue>& issues) {
    std::vector<std::int64_t> out;
    for (const core::Issue& issue : issues) {
      if (issue.rule == "s") out.push_back(core::step_of_news(issue).value_or(-1));
    }
    return out;
  }
};

std::string sequence(const std::string& keys) {
  return "  - {name: s, clear_after: 1, " + keys + "}";
}
const std::string kThen = sequence("sequence: [a, b], within: 3 steps");

TEST(DeclaredSequences, OneRuleAndThenTheOther) {
  Story story(kThen);
  story.trains({"", "a", "", "b", ""});
  EXPECT_THAT(story.raised(), ElementsAre(3));
  EXPECT_THAT(story.ended(), ElementsAre(4));
  const core::Issue issue = story.first();
  EXPECT_THAT(issue.summary,
              HasSubstr("a hit at train step 1 and b at train step 3, 2 steps later"));
  EXPECT_EQ(issue.evidence.observed.name, "steps");
  EXPECT_EQ(issue.evidence.observed.value, 2);
  EXPECT_EQ(issue.evidence.threshold->value, 3);
  EXPECT_EQ(issue.evidence.window.first, 1);
  EXPECT_EQ(issue.labels.get("worker"), "");
  EXPECT_EQ(story.rule.rule_state("s"), "IssuesFound");
}

TEST(DeclaredSequences, TheLimitIsStillWithin) {
  Story just(kThen);
  just.trains({"a", "", "", "b"});
  EXPECT_THAT(just.raised(), ElementsAre(3));
  Story over(kThen);
  over.trains({"a", "", "", "", "b"});
  EXPECT_THAT(over.raised(), IsEmpty());
}

TEST(DeclaredSequences, TheSameStepIsNotLater) {
  Story same(kThen);
  same.trains({"ab", "", ""});
  EXPECT_THAT(same.raised(), IsEmpty());
  Story turned(kThen);
  turned.trains({"b", "a", ""});
  EXPECT_THAT(turned.raised(), IsEmpty());
  Story goes_on(kThen);
  goes_on.trains({"ab", "ab"});
  EXPECT_THAT(goes_on.raised(), ElementsAre(1));
}

TEST(DeclaredSequences, WhatHitsOnCountsAtItsNewestHit) {
  Story story(
      kThen);  // its cooldown keeps the later hits of `a` from being told, not from counting
  story.trains({"a", "a", "a", "a", "a", "", "b", ""});
  EXPECT_THAT(story.raised(), ElementsAre(6));
}

TEST(DeclaredSequences, GoesOnAsLongAsItsLastRuleDoes) {
  Story story(kThen);
  story.trains({"a", "b", "b", "b", "b", "b", "", ""});
  EXPECT_THAT(story.raised(), ElementsAre(1));
  EXPECT_THAT(story.ended(), ElementsAre(6));
}

TEST(DeclaredSequences, ThreeInARow) {
  const std::string rules = sequence("sequence: [a, b, c], within: 4 steps");
  Story story(rules);
  story.trains({"a", "c", "b", "", "c"});
  EXPECT_THAT(story.raised(), ElementsAre(4));
  Story late(rules);
  late.trains({"a", "", "b", "", "", "c"});
  EXPECT_THAT(late.raised(), IsEmpty());
  Story twice(sequence("sequence: [a, a], within: 4 steps"));
  twice.trains({"", "a", "", "a"});
  EXPECT_THAT(twice.raised(), ElementsAre(3));
}

TEST(DeclaredSequences, AnotherRuleBetweenBreaksIt) {
  const std::string rules = sequence("sequence: [a, b], within: 9 steps, without: c");
  Story broken(rules);
  broken.trains({"a", "c", "b"});
  EXPECT_THAT(broken.raised(), IsEmpty());
  Story with_the_first(rules);
  with_the_first.trains({"ac", "", "b"});
  EXPECT_THAT(with_the_first.raised(), ElementsAre(2));
  Story with_the_last(rules);
  with_the_last.trains({"a", "", "bc"});
  EXPECT_THAT(with_the_last.raised(), IsEmpty());
  Story again(rules);
  again.trains({"a", "c", "a", "b"});
  EXPECT_THAT(again.raised(), ElementsAre(3));
}

TEST(DeclaredSequences, WhatShouldFollowAndDoesNot) {
  const std::string rules = sequence("sequence: a, without: c, within: 2 steps");
  Story missing(rules);
  missing.trains({"", "a", "", "", "", "c"});
  EXPECT_THAT(missing.raised(), ElementsAre(3));
  EXPECT_THAT(missing.ended(), ElementsAre(5));
  EXPECT_THAT(missing.first().summary,
              HasSubstr("a hit at train step 1, and c did not within 2 steps"));
  Story there(rules);
  there.trains({"", "a", "", "c", "", "", ""});
  EXPECT_THAT(there.raised(), IsEmpty());
  Story too_early(rules);
  too_early.trains({"", "ac", "", "", ""});
  EXPECT_THAT(too_early.raised(), ElementsAre(3));
}

TEST(DeclaredSequences, WithinATime) {
  Story story(sequence("sequence: [a, b], within: 250ms"));  // a step takes 100 ms
  story.trains({"a", "", "b", "", "", "", "b"});
  EXPECT_THAT(story.raised(), ElementsAre(2));
  EXPECT_EQ(story.first().evidence.observed.name, "seconds");
  EXPECT_NEAR(story.first().evidence.observed.value, 0.2, 0.11);
  Story late(sequence("sequence: [a, b], within: 250ms"));
  late.trains({"a", "", "", "", "", "b"});
  EXPECT_THAT(late.raised(), IsEmpty());
}

TEST(DeclaredSequences, OfOneWorkerOrOfAll) {
  Story all(kThen, 2);
  Story each(sequence("sequence: [a, b], within: 3 steps, by: [worker]"), 2);
  for (Story* story : {&all, &each}) {
    const std::vector<std::vector<std::string>> steps{{"a", ""}, {"", "b"}, {"b", ""}, {"", ""}};
    for (std::size_t s = 0; s < steps.size(); ++s) {
      for (std::size_t w = 0; w < 2; ++w) {
        story->says(w, Mode::train, static_cast<std::int64_t>(s), steps[s][w]);
      }
    }
  }
  EXPECT_THAT(all.raised(), ElementsAre(1));
  EXPECT_THAT(each.raised(), ElementsAre(2));
  EXPECT_EQ(each.first().labels.get("worker"), "worker_0");
}

TEST(DeclaredSequences, WhateverTheOrderOfWorkers) {
  std::vector<std::vector<std::string>> ids;
  const std::vector<std::vector<std::string>> steps{{"a", ""}, {"", "b"}, {"bc", "a"}, {"b", ""}};
  for (const bool ahead : {false, true}) {
    Story story(sequence("sequence: [a, b], within: 2 steps, without: c"), 2);
    const auto say = [&](std::size_t w, std::size_t s) {
      story.says(w, Mode::train, static_cast<std::int64_t>(s), steps[s][w]);
    };
    if (ahead) {  // the second worker is three steps ahead
      for (std::size_t s = 0; s < steps.size(); ++s) say(1, s);
      for (std::size_t s = 0; s < steps.size(); ++s) say(0, s);
    } else {
      for (std::size_t s = 0; s < steps.size(); ++s) {
        say(0, s);
        say(1, s);
      }
    }
    EXPECT_THAT(story.raised(), ElementsAre(1));
    ids.push_back(story.rule.ids());
  }
  EXPECT_EQ(ids[0], ids[1]);
}

TEST(DeclaredSequences, AnEvaluationIsALaterStep) {
  Story story(kThen);
  auto& worker = story.workers[0];
  const auto says = [&](Mode mode, std::int64_t step, std::int64_t global,
                        const std::string& high) {
    worker.header.global_step = global;
    story.says(0, mode, step, high);
  };
  says(Mode::train, 0, 0, "a");
  says(Mode::eval, 0, 1, "b");
  EXPECT_THAT(story.raised(), IsEmpty());  // others may still evaluate
  says(Mode::train, 1, 2, "");
  EXPECT_EQ(story.raised().size(), 1U);
  EXPECT_EQ(story.first().mode, Mode::eval);
}

TEST(DeclaredSequences, TheEndOfTheRunSettlesTheRest) {
  Story story(kThen);
  story.says(0, Mode::train, 0, "a");
  story.rule.feed(story.workers[0].scalars(Mode::train, {{"b", 1, 1.0, Role::metric}}));
  EXPECT_THAT(story.raised(), IsEmpty());
  story.rule.feed(story.workers[0].end());
  EXPECT_THAT(story.raised(), ElementsAre(1));
}

TEST(DeclaredSequences, ASequenceOfSequences) {
  Story story(
      "  - {name: s, sequence: [ab, c], within: 9 steps}\n"  // stands before what it follows
      "  - {name: ab, sequence: [a, b], within: 3 steps}");
  story.trains({"a", "b", "", "c", ""});
  EXPECT_THAT(story.raised(), ElementsAre(3));
}

TEST(DeclaredSequences, AConditionAsksWhatHitLately) {
  Story story(sequence("select: 'metric(\"x\")', when: 'value > 0 and fired(\"a\", 2 steps)'"));
  story.trains({"x", "a", "x", "x", "x", "ax", ""});
  EXPECT_THAT(story.raised(), ElementsAre(2, 5));  // 4 is three steps behind 1
  EXPECT_THAT(story.ended(), ElementsAre(4, 6));
  EXPECT_EQ(story.first().labels.get("metric"), "x");
  EXPECT_EQ(story.first().labels.get("worker"), "worker_0");
  Story ever(sequence("select: step(), by: [run_uid], when: 'fired(\"a\") and not fired(\"b\")'"));
  ever.trains({"", "a", "", "", "b", ""});
  EXPECT_THAT(ever.raised(), ElementsAre(1));
  EXPECT_THAT(ever.ended(), ElementsAre(4));
}

TEST(DeclaredSequences, AConditionHearsOtherWorkers) {
  for (const bool ahead : {false, true}) {
    Story story(sequence("select: 'metric(\"x\")', when: 'value > 0 and fired(\"a\", 1 steps)'"),
                2);
    const std::vector<std::vector<std::string>> steps{{"a", ""}, {"", "x"}, {"", "x"}};
    const auto say = [&](std::size_t w, std::size_t s) {
      story.says(w, Mode::train, static_cast<std::int64_t>(s), steps[s][w]);
    };
    for (std::size_t s = 0; s < 3; ++s) say(ahead ? 1 : 0, s);
    for (std::size_t s = 0; s < 3; ++s) say(ahead ? 0 : 1, s);
    EXPECT_THAT(story.raised(), ElementsAre(1));
    EXPECT_THAT(story.ended(), ElementsAre(2));
    EXPECT_EQ(story.first().labels.get("worker"), "worker_1");
  }
}

TEST(DeclaredSequences, TheirSentencesAreTheUsers) {
  Story story(sequence(
      "sequence: [a, b], within: 3 steps, by: [worker], evidence: '{worker} from {first} to "
      "{last}: {took}'"));
  story.trains({"a", "", "b"});
  EXPECT_THAT(story.first().summary, HasSubstr("worker_0 from train step 0 to train step 2: 2"));
}

TEST(DeclaredSequences, NameTheCharacterOfEveryFault) {
  const auto errors = [](const std::string& keys) {
    return read_rules_text(kParts + "  - use: stalled_training_rule\n  - name: s\n" + keys).errors;
  };
  EXPECT_EQ(errors("    sequence: [a, b]\n    within: 5m\n"), "");
  EXPECT_THAT(
      errors("    sequence: [a, bb]\n    within: 5m\n"),
      ::testing::AllOf(HasSubstr(":7:19:"), HasSubstr("no rule is called bb; did you mean b?")));
  EXPECT_THAT(errors("    sequence: [a, b]\n    within: 5 stepps\n"),
              ::testing::AllOf(HasSubstr(":8:15:"), HasSubstr("did you mean step")));
  EXPECT_THAT(errors("    sequence: [a]\n    within: 5 steps\n"), HasSubstr("at least two rules"));
  EXPECT_THAT(errors("    sequence: [a, b]\n"), HasSubstr("within: 50 steps"));
  EXPECT_THAT(errors("    sequence: [a, stalled_training_rule]\n    within: 5 steps\n"),
              HasSubstr("is judged at times, not at steps"));
  EXPECT_THAT(errors("    sequence: [a, s]\n    within: 5 steps\n"), HasSubstr("in a circle"));
  EXPECT_THAT(errors("    sequence: [a, b]\n    within: 5 steps\n    by: [wroker]\n"),
              HasSubstr("did you mean worker?"));
  EXPECT_THAT(errors("    sequence: [a, b]\n    within: 5 steps\n    window: last 5 steps\n"),
              HasSubstr("it has no window"));
  EXPECT_THAT(errors("    sequence: [a, b]\n    within: 5 steps\n    evidence: 'in {tok}'\n"),
              ::testing::AllOf(HasSubstr(":9:20:"), HasSubstr("did you mean took?")));
  EXPECT_THAT(errors("    select: step()\n    when: duration > 1 and fired(\"bb\")\n"),
              ::testing::AllOf(HasSubstr(":8:35:"), HasSubstr("did you mean b?")));
  EXPECT_THAT(
      errors("    let: {x: 'metric(\"a\")', y: 'metric(\"b\")'}\n    when: x.value > y.value "
             "and fired(\"a\")\n"),
      HasSubstr("fired() needs one selection"));
}

}  // namespace
}  // namespace tocsin::rules
