// Restore that cannot lose: killed at any point (before the first record, before the first
// snapshot, between two pieces, between a piece and its commit), what is told in the end is what
// would have been told without the kill.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cmath>

#include "tests/unit/rules/state_topic.h"

namespace tocsin::rules {
namespace {

using namespace stories;  // NOLINT: the stories are this file's language

// Two runs, one of two workers; then a second launch of the first run, killed and reported by its
// node's agent, and a third run.
std::vector<OwnedFrame> input(const std::vector<int>& one, const std::vector<int>& two,
                              const std::vector<int>& three, const std::vector<int>& order) {
  std::vector<OwnedFrame> frames =
      interleave({story("a", 0, 2, one), story("a", 1, 2, two), story("b", 0, 1, one)}, order);
  std::vector<OwnedFrame> again = story("a", 0, 1, three);
  for (OwnedFrame& frame : again) {
    frame.header.attempt = 2;
    frame.header.incarnation += 1000;
    frames.push_back(std::move(frame));
  }
  frames.pop_back();  // its last word
  FakeWorker agent("digits", "a", core::kNodeAgentRank);
  agent.header.time = frames.back().header.time;
  OwnedFrame died = agent.heartbeat();
  died.body = R"({"event":"died","worker":"worker_0","exit_code":null,"incarnation":)" +
              std::to_string(frames.back().header.incarnation) + "}";
  died.header.body_length = static_cast<std::uint32_t>(died.body.size());
  frames.push_back(died);
  for (OwnedFrame& frame : story("c", 0, 1, one)) frames.push_back(std::move(frame));
  died.body.replace(died.body.find("null"), 4, "137");
  died.header.body_length = static_cast<std::uint32_t>(died.body.size());
  ++died.header.sequence;
  frames.push_back(died);
  return frames;
}

struct Plan {
  std::vector<bool> kill;
  std::vector<bool> commit;
  std::vector<std::size_t> budget;  // of the piece at this step; 0 = none
  std::size_t tick_every = 3;
  std::uint32_t max_runs = 10000;
};

std::vector<std::string> play(const std::vector<OwnedFrame>& frames, const Plan& plan) {
  static const RulesConfig kConfig = read_rules_text(kRules).config;
  EngineOptions options;
  options.config.max_runs = plan.max_runs;
  StateTopic topic(kConfig, options);
  std::vector<bool> killed(frames.size());
  while (topic.next() < static_cast<std::int64_t>(frames.size())) {
    const auto i = static_cast<std::size_t>(topic.next());
    topic.feed(frames[i]);
    if (i % plan.tick_every == 0) {
      // Far enough apart to end grace periods, make workers idle and training stalled.
      topic.tick(kStart + static_cast<std::int64_t>(i) * 2 * kSecond);
    }
    if (plan.budget[i] > 0) topic.piece(plan.budget[i]);
    if (plan.commit[i]) topic.commit();
    if (plan.kill[i] && !killed[i]) {
      killed[i] = true;
      topic.restart();
      if (topic.broken()) return {"restart failed"};
    }
  }
  topic.commit();
  return topic.told();
}

RC_GTEST_PROP(Restore, KilledAtAnyPointsTellsWhatWouldHaveBeenTold,
              (std::vector<int> one, std::vector<int> two, std::vector<int> three,
               const std::vector<int>& order)) {
  for (std::vector<int>* steps : {&one, &two, &three}) {
    steps->resize(std::min<std::size_t>(steps->size(), 20));  // long enough for every decision
  }
  const std::vector<OwnedFrame> frames = input(one, two, three, order);
  Plan calm{std::vector<bool>(frames.size()), std::vector<bool>(frames.size(), true),
            std::vector<std::size_t>(frames.size()), *rc::gen::inRange<std::size_t>(2, 9),
            *rc::gen::element<std::uint32_t>(1, 2, 10000)};
  const std::vector<std::string> expected = play(frames, calm);
  Plan plan = calm;
  for (std::size_t i = 0; i < frames.size(); ++i) {
    plan.kill[i] = *rc::gen::inRange(0, 20) == 0;
    plan.commit[i] = *rc::gen::inRange(0, 3) != 0;
    plan.budget[i] = *rc::gen::element<std::size_t>(0, 1, 1, 300, 2000, kWhole);
  }
  RC_ASSERT(play(frames, plan) == expected);
}

TEST(Restore, AStateFromBeforeTheFirstRecordIsAState) {
  StateTopic topic("  - exploding_tensor");
  topic.commit();  // nothing was read yet: there are no positions that would fence a late writer
  ASSERT_TRUE(topic.state().empty());
  FakeWorker worker;
  topic.feed(worker.start());
  topic.commit();  // the first positions, and with them the state from before
  ASSERT_FALSE(topic.state().empty());
  RuleHarness after("  - exploding_tensor");
  for (const auto& [key, value] : topic.state()) {
    ASSERT_TRUE(after.engine().restore(3, key, value));
  }
  const std::vector<core::Position> committed{{{"telemetry", 3}, 7}};
  const auto restored = after.engine().finish_restore(3, committed);
  ASSERT_TRUE(restored.has_value());
  ASSERT_TRUE(restored->positions.has_value()) << "an empty state is not: no state";
  EXPECT_TRUE(restored->positions->empty()) << "read from the beginning";
  RuleHarness fresh("  - exploding_tensor");
  const auto nothing = fresh.engine().finish_restore(3, committed);
  ASSERT_TRUE(nothing.has_value());
  EXPECT_FALSE(nothing->positions.has_value());
}

std::map<std::string, std::string> some_state() {
  StateTopic topic(kRules);
  std::vector<OwnedFrame> frames = story("a", 0, 1, {1, 2, 3, 7, 8});
  frames.pop_back();  // it goes on
  for (const OwnedFrame& frame : frames) topic.feed(frame);
  while (topic.piece(kWhole)) {
  }
  topic.tick(kStart + 100 * kSecond);  // and an entry of the log
  topic.commit();
  return topic.state();
}

TEST(Restore, EveryChangedMissingOrForeignRecordIsAnErrorAndNeverNoState) {
  const std::map<std::string, std::string> state = some_state();
  ASSERT_GE(state.size(), 6U) << "head, workers, names, rosters, slots, index, entry";
  const auto refused = [](const std::map<std::string, std::string>& records) {
    RuleHarness other(kRules);
    for (const auto& [key, value] : records) {
      EXPECT_TRUE(other.engine().restore(3, key, value).has_value());
    }
    const bool error = !other.engine().finish_restore(3, {}).has_value();
    if (error) {
      EXPECT_EQ(other.engine().stats().state_faults, 1U);
      other.engine().go_live(3, core::wall_time(kStart));
      const auto issues = other.firing();
      EXPECT_EQ(issues.size(), 1U);
      if (!issues.empty()) {
        EXPECT_EQ(issues[0].rule, "state_incomplete");
      }
    }
    return error;
  };
  EXPECT_FALSE(refused(state));
  for (const auto& [key, value] : state) {
    auto missing = state;
    missing.erase(key);
    if (!key.starts_with("log/")) {
      EXPECT_TRUE(refused(missing)) << key;
    }
    for (std::size_t at = 0; at < value.size(); at += 1 + value.size() / 40) {
      auto cut = state;
      cut[key].resize(at);
      EXPECT_TRUE(refused(cut)) << key << " cut at " << at;
      auto changed = state;
      changed[key][at] = static_cast<char>(changed[key][at] ^ 0x10);
      EXPECT_TRUE(refused(changed)) << key << " changed at " << at;
    }
  }
}

TEST(Restore, ASnapshotOfManyRunsLeavesOnlyWhatIsNeeded) {
  StateTopic topic("  - exploding_tensor");
  for (int round = 0; round < 6; ++round) {
    for (const OwnedFrame& frame : story("a", 0, 1, {1, 2, 3})) {
      OwnedFrame again = frame;
      again.header.attempt = static_cast<std::uint32_t>(round + 1);
      again.header.incarnation += static_cast<std::uint64_t>(round);
      topic.feed(again);
    }
    while (topic.piece(100)) topic.commit();
  }
  topic.commit();
  std::size_t keys = topic.state().size();
  EXPECT_LE(keys, 6U) << "head, names and index; what earlier attempts wrote is gone";
}

TEST(Restore, ChangedRulesStartAnewAndWhatTheyHadFiredIsResolved) {
  FakeWorker worker;
  const auto bad = [&](std::int64_t step) {
    return worker.tensors(Mode::train, step, {{"g", {std::nan(""), 0}}, {"b", {0}, Role::bias}});
  };
  RuleHarness before(
      "  - exploding_tensor\n  - {use: all_zero, with: {collection_names: [biases]}}");
  before.feed(bad(0));
  ASSERT_EQ(before.firing().size(), 2U);
  // all_zero is changed and moves to the front; exploding_tensor stays as it is.
  RuleHarness after(
      "  - {use: all_zero, with: {collection_names: [biases], threshold: 50}}\n"
      "  - exploding_tensor");
  before.events();
  while (before.engine().snapshot(3, kWhole, [&](const StateRecord& record) {
    ASSERT_TRUE(after.engine().restore(3, record.key, *record.value));
  })) {
  }
  ASSERT_TRUE(after.engine().finish_restore(3, {}));
  EXPECT_TRUE(after.issues().empty());
  after.engine().go_live(3, core::wall_time(kStart));
  ASSERT_EQ(after.resolved().size(), 1U);
  EXPECT_EQ(after.resolved()[0].rule, "all_zero");
  EXPECT_EQ(after.resolved()[0].labels, before.firing()[1].labels);
  after.offset = 1;
  after.feed(bad(1));
  // The changed rule fires anew; the other one's issue is still open and within its cooldown.
  ASSERT_EQ(after.firing().size(), 1U);
  EXPECT_EQ(after.firing()[0].rule, "all_zero");
  EXPECT_NE(after.firing()[0].event_id, before.firing()[1].event_id);
}

}  // namespace
}  // namespace tocsin::rules
