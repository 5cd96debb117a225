// Reloads and kills at any place, also in the middle of a snapshot.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "tests/unit/rules/state_topic.h"

namespace tocsin::rules {
namespace {

using namespace stories;  // NOLINT: the stories are this file's language

// A rule that is taken out and comes back has a new state under the key of its old one, which the last
// snapshot needs until the next one is whole. `under_way`: pieces of a snapshot that are written
// when the rule goes; `behind`: of the next, when the process dies.
TEST(ReloadAnywhere, ARuleThatComesBackLeavesTheLastSnapshotWhole) {
  // Over several selections a rule has a part of its own. That of `high` is behind that of `low`, so
  // that a piece ends between that and the index.
  const auto rule = [](const std::string& name, const std::string& when) {
    return "  - {name: " + name +
           ", let: {l: 'metric(\"loss\")', s: step()}, window: last 2 steps, when: '" + when +
           " and last(s.duration) >= 0', clear_after: 1}\n";
  };
  const std::string others = rule("high", "mean(l.value) > 0.8");
  const std::string with = rule("low", "mean(l.value) < 0.7") + others;
  const auto play = [&](int under_way, int behind, bool kill) {
    StateTopic topic(with);
    FakeWorker worker;
    topic.feed(worker.dictionary({{core::DictionaryType::scalar, "loss", Role::loss}}));
    std::int64_t at = 0;
    const auto steps = [&](std::int64_t until) {
      for (; at < until; ++at) {
        topic.feed(worker.scalars(Mode::train, {{"loss", at, at % 3 == 2 ? 0.0 : 1.0}}));
        topic.feed(worker.step_end(Mode::train, at));
        topic.commit();
      }
    };
    const auto pieces = [&](int count) {
      while (count-- > 0 && topic.piece(1)) topic.commit();
      topic.commit();
    };
    for (int round = 0; round < 2; ++round) {  // so that also the other set of keys has its turn
      steps(at + 4);
      pieces(1000);
      steps(at + 1);
      pieces(under_way);
      topic.reload(others);
      topic.commit();
      topic.reload(with);
      steps(at + 4);
      pieces(behind);
      if (kill) topic.restart();
      if (topic.broken()) return std::vector<std::string>{"broken"};
    }
    steps(at + 4);
    return issues_of(topic.told());
  };
  const std::vector<std::string> expected = play(0, 0, false);
  ASSERT_GE(expected.size(), 20U);
  for (int under_way = 0; under_way < 8; ++under_way) {
    for (int behind = 0; behind < 20; ++behind) {
      EXPECT_EQ(play(under_way, behind, true), expected)
          << under_way << " pieces, the rule goes and comes, " << behind << " pieces";
    }
  }
}

// Rules of all shapes, of which a reload takes some away, changes some and adds some.
std::string some_rules(int choice) {
  static const std::vector<std::string> kAll = {
      "  - {use: exploding_tensor, with: {cooldown: 500ms}}\n",
      "  - {use: exploding_tensor, with: {cooldown: 1h}}\n",
      "  - {use: all_zero, with: {collection_names: [gradients, losses]}}\n",
      "  - {use: all_zero, with: {collection_names: [gradients, losses], min_hits: 2}}\n",
      "  - {use: loss_not_decreasing, preset: original, with: {num_steps: 3}}\n",
      "  - {use: loss_not_decreasing, preset: original, with: {num_steps: 2}}\n",
      "  - {use: overfit, preset: original, with: {ratio_threshold: 0.3}}\n",
      "  - {use: weight_update_ratio, preset: original}\n",
      "  - {use: cpu_bottleneck, with: {patience: 2, scan_interval_us: 1000000}}\n",
      "  - {use: stalled_training_rule, with: {threshold: 5}}\n",
      "  - {name: high, select: 'metric(\"loss\")', when: 'value > 0.8'}\n",
      "  - {name: high, select: 'metric(\"loss\")', when: 'value > 0.8', shadow: true}\n",
      "  - {name: falls, select: 'metric(\"loss\")', window: last 4 steps, when: 'delta(value) < "
      "0'}\n",
      "  - {name: then, select: 'tensor(\"g\")', when: 'fired(\"falls\", 5 steps) and l2 > 0'}\n",
  };
  std::string out;
  std::set<std::string> names;
  for (std::size_t i = 0; i < kAll.size(); ++i) {
    if ((static_cast<unsigned>(choice) >> i & 1U) == 0) continue;
    const std::string name = kAll[i].substr(0, kAll[i].find(','));
    if (names.insert(name).second) out += kAll[i];
  }
  if (out.find("falls,") == std::string::npos) {
    const std::size_t follows = out.find("  - {name: then");
    if (follows != std::string::npos) out.erase(follows);
  }
  return out.empty() ? kAll.front() : out;
}

// A reload is an entry of the log: wherever it comes and wherever the process dies, what is told is
// what would have been told without the kill. `down`: the rules change while nothing runs.
RC_GTEST_PROP(ReloadAnywhere, AKillChangesNothing,
              (std::vector<int> one, std::vector<int> two, const std::vector<int>& order)) {
  one.resize(std::min<std::size_t>(one.size(), 7));
  two.resize(std::min<std::size_t>(two.size(), 7));
  const std::vector<OwnedFrame> frames =
      interleave({story("a", 0, 2, one), story("a", 1, 2, two), story("b", 0, 1, one)}, order);
  std::vector<std::string> sets;  // few: what goes comes back
  for (int i = 0; i < 3; ++i) sets.push_back(some_rules(*rc::gen::inRange(0, 1 << 14)));
  StateTopic calm(sets[0]);
  StateTopic killed(sets[0]);
  for (std::size_t i = 0; i < frames.size(); ++i) {
    const bool reloads = *rc::gen::inRange(0, 6) == 0;
    const std::string rules = reloads ? sets[*rc::gen::inRange<std::size_t>(0, 3)] : "";
    const bool down = reloads && *rc::gen::inRange(0, 2) == 0;
    for (StateTopic* topic : {&calm, &killed}) {
      topic->feed(frames[i]);
      if (i % 3 == 0) topic->tick(kStart + static_cast<std::int64_t>(i) * 2 * kSecond);
      topic->commit();
      if (reloads && !(down && topic == &killed)) topic->reload(rules);
      topic->commit();
    }
    if (*rc::gen::inRange(0, 2) == 0) {
      killed.piece(*rc::gen::element<std::size_t>(1, 500, 2000, kWhole));
    }
    killed.commit();
    if (down) {
      killed.restart_with(rules);
      killed.commit();
    } else if (*rc::gen::inRange(0, 6) == 0) {
      killed.restart();
      killed.commit();
    }
    RC_ASSERT(!killed.broken());
    RC_ASSERT(issues_of(killed.told()) == issues_of(calm.told()));
  }
}

// All shapes: rows, series, passes, silence, samples; reloads and kills anywhere.
RC_GTEST_PROP(ReloadAnywhere, WhatHasNotChangedTellsWhatItWouldHaveToldAnyway,
              (std::vector<int> one, std::vector<int> two, const std::vector<int>& order)) {
  one.resize(std::min<std::size_t>(one.size(), 20));
  two.resize(std::min<std::size_t>(two.size(), 20));
  const std::vector<OwnedFrame> frames =
      interleave({story("a", 0, 2, one), story("a", 1, 2, two), story("b", 0, 1, one)}, order);
  const std::string other =
      "  - {use: all_zero, name: other, with: {collection_names: [biases]}}\n";
  const auto play = [&](bool calm) {
    StateTopic topic(kRules);
    bool more = false;
    for (std::size_t i = 0; i < frames.size(); ++i) {
      topic.feed(frames[i]);
      if (i % 3 == 0) topic.tick(kStart + static_cast<std::int64_t>(i) * 2 * kSecond);
      if (calm) {
        topic.commit();
        continue;
      }
      if (*rc::gen::inRange(0, 6) == 0) topic.piece(*rc::gen::element<std::size_t>(1, 500, kWhole));
      if (*rc::gen::inRange(0, 8) == 0) {
        more = !more;
        topic.reload(more ? other + kRules : kRules);
      }
      topic.commit();
      if (*rc::gen::inRange(0, 15) == 0) topic.restart();
      if (topic.broken()) return std::vector<std::string>{"failed"};
    }
    return issues_of(topic.told());
  };
  const std::vector<std::string> expected = play(true);
  RC_ASSERT(play(false) == expected);
}

}  // namespace
}  // namespace tocsin::rules
