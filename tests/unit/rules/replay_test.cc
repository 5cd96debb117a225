// Properties of the engine as a function of its input: any interleaving that keeps each worker's
// order, duplicates, other runs in between, and a restart at any point change nothing.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "tests/support/rule_harness.h"

namespace tocsin::rules {
namespace {

using namespace testing_support;  // NOLINT: the harness is this file's language
using core::Mode;
using core::Role;

constexpr std::size_t kWhole = std::size_t{1} << 40;  // a snapshot in one piece

constexpr char kRules[] =
    "  - {use: exploding_tensor, with: {cooldown: 500ms}}\n"
    "  - {use: vanishing_gradient, with: {min_hits: 2}}\n"
    "  - {use: loss_not_decreasing, with: {num_steps: 2}}\n"
    "  - {use: loss_not_decreasing, name: original_loss, preset: original, with: {num_steps: 3}}\n"
    "  - {use: weight_update_ratio, preset: original}\n"
    "  - {use: overfit, preset: original, with: {ratio_threshold: 0.3}}\n"
    "  - {use: overfit, name: turned}\n"
    "  - {use: all_zero, with: {collection_names: [gradients, losses]}}\n"
    "  - {use: stalled_training_rule, with: {threshold: 5}}\n"
    "  - {use: cpu_bottleneck, with: {patience: 2, scan_interval_us: 1000000}}";

double loss_of(int choice) {
  static const double kLosses[] = {1.0, 0.5, 0.9, 3.0, 0.0, std::nan(""), HUGE_VAL, 0.1};
  return kLosses[choice % 8];
}

/// What one worker sends: some steps with odd values, evaluations in between, perhaps lost frames.
std::vector<OwnedFrame> story(const std::string& run, std::uint32_t rank, std::uint32_t world,
                              const std::vector<int>& choices) {
  FakeWorker worker("digits", run, rank, world);
  std::vector<OwnedFrame> frames{
      worker.start(),
      worker.dictionary({{core::DictionaryType::scalar, "loss", Role::loss},
                         {core::DictionaryType::tensor, "g", Role::gradient},
                         {core::DictionaryType::series, "hw.gpu.utilization{hw.id=0}"},
                         {core::DictionaryType::series,
                          "system.cpu.utilization{cpu.logical_number=0,cpu.mode=idle}"}})};
  std::int64_t batch = 0;
  for (std::size_t s = 0; s < choices.size(); ++s) {
    const int choice = std::abs(choices[s] % 1000);
    const auto step = static_cast<std::int64_t>(s);
    const double x = choice % 7 == 0 ? std::nan("") : choice % 3 == 0 ? 0.0 : 0.5;
    const double l2 = choice % 5 == 0 ? 1e3 : 1;
    frames.push_back(worker.summary(
        Mode::train, step,
        {row_of("g", Role::gradient, 4, x, x), row_of("w", Role::weight, 4, l2, l2)}));
    if (choice % 11 == 0) ++worker.header.sequence;  // a frame that got lost
    frames.push_back(worker.scalars(Mode::train, {{"loss", step, loss_of(choice)}}));
    frames.push_back(worker.step_end(Mode::train, step));
    if (choice % 4 == 0) {
      frames.push_back(worker.system({{"hw.gpu.utilization{hw.id=0}", worker.header.time, 0.01},
                                      {"system.cpu.utilization{cpu.logical_number=0,cpu.mode=idle}",
                                       worker.header.time, 0.01}}));
    }
    if (s % 3 == 2) {
      for (int i = 0; i < 2; ++i) {
        frames.push_back(worker.scalars(Mode::eval, {{"loss", batch, loss_of(choice + i)}}));
        frames.push_back(worker.step_end(Mode::eval, batch++));
      }
      ++worker.header.pass;
    }
  }
  frames.push_back(worker.end());
  return frames;
}

std::string text(const Event& event) {
  if (const auto* issue = std::get_if<core::Issue>(&event)) {
    return issue->event_id + " #" + std::to_string(issue->sequence) + " " + issue->rule + " " +
           std::string(core::to_string(issue->status)) + " " + issue->summary + " x" +
           std::to_string(issue->evidence.occurrences) + " since " +
           core::to_rfc3339(issue->starts_at);
  }
  if (const auto* job = std::get_if<core::JobEvent>(&event)) {
    return std::string(core::to_string(job->phase)) + std::to_string(job->number) + job->outcome;
  }
  if (const auto* status = std::get_if<core::RuleStatusEvent>(&event)) {
    std::string counts;
    for (const auto& [outcome, count] : status->evaluations) {
      counts += outcome + std::to_string(count);
    }
    return status->rule + " " + std::string(core::to_string(status->status)) + counts;
  }
  return std::get<core::Command>(event).command_id;
}

// What must not depend on the interleaving: ids and what the issue says; not the counters that tell
// in which order issues of different workers came out.
std::vector<std::string> findings(RuleHarness& rule) {
  std::vector<std::string> out;
  for (const core::Issue& issue : rule.issues()) {
    out.push_back(issue.event_id + " " + issue.rule + " " + issue.summary + " since " +
                  core::to_rfc3339(issue.starts_at) + " " +
                  std::to_string(issue.evidence.occurrences));
  }
  std::sort(out.begin(), out.end());
  return out;
}

std::vector<OwnedFrame> interleave(const std::vector<std::vector<OwnedFrame>>& stories,
                                   const std::vector<int>& choices) {
  std::vector<OwnedFrame> out;
  std::vector<std::size_t> next(stories.size());
  for (std::size_t i = 0;; ++i) {
    std::vector<std::size_t> left;
    for (std::size_t w = 0; w < stories.size(); ++w) {
      if (next[w] < stories[w].size()) left.push_back(w);
    }
    if (left.empty()) return out;
    const int choice = choices.empty() ? 0 : std::abs(choices[i % choices.size()] % 1000);
    const std::size_t w = left[static_cast<std::size_t>(choice) % left.size()];
    out.push_back(stories[w][next[w]++]);
  }
}

RC_GTEST_PROP(Replay, AnyInterleavingOfWorkersGivesTheSameFindings,
              (const std::vector<int>& one, const std::vector<int>& two,
               const std::vector<int>& order)) {
  const std::vector<std::vector<OwnedFrame>> stories{story("r", 0, 2, one), story("r", 1, 2, two)};
  RuleHarness sequential(kRules);
  for (const OwnedFrame& frame : interleave(stories, {})) sequential.feed(frame);
  RuleHarness mixed(kRules);
  for (const OwnedFrame& frame : interleave(stories, order)) mixed.feed(frame);
  RC_ASSERT(findings(sequential) == findings(mixed));
}

RC_GTEST_PROP(Replay, DuplicatesAreHarmless,
              (const std::vector<int>& steps, const std::vector<int>& again)) {
  const std::vector<OwnedFrame> frames = story("r", 0, 1, steps);
  RuleHarness once(kRules);
  RuleHarness twice(kRules);
  for (std::size_t i = 0; i < frames.size(); ++i) {
    once.feed(frames[i]);
    twice.feed(frames[i]);
    if (again.empty()) continue;
    const auto back = static_cast<std::size_t>(std::abs(again[i % again.size()] % 1000)) % (i + 1);
    twice.feed(frames[i - back]);
  }
  RC_ASSERT(findings(once) == findings(twice));
}

RC_GTEST_PROP(Replay, RunsDoNotDisturbEachOther,
              (const std::vector<int>& one, const std::vector<int>& two,
               const std::vector<int>& order)) {
  RuleHarness apart(kRules);
  for (const OwnedFrame& frame : story("a", 0, 1, one)) apart.feed(frame);
  for (const OwnedFrame& frame : story("b", 0, 1, two)) apart.feed(frame);
  RuleHarness together(kRules);
  for (const OwnedFrame& frame :
       interleave({story("a", 0, 1, one), story("b", 0, 1, two)}, order)) {
    together.feed(frame);
  }
  RC_ASSERT(findings(apart) == findings(together));
}

RC_GTEST_PROP(Replay, ARestartAtAnyPointContinuesAsIfNothingHadHappened,
              (const std::vector<int>& one, const std::vector<int>& two,
               const std::vector<int>& order)) {
  const std::vector<OwnedFrame> frames =
      interleave({story("a", 0, 2, one), story("a", 1, 2, two), story("b", 0, 1, one)}, order);
  const std::size_t snapshot_at = *rc::gen::inRange<std::size_t>(0, frames.size());
  const std::size_t crash_at = *rc::gen::inRange<std::size_t>(snapshot_at, frames.size());
  const std::size_t tick_every = *rc::gen::inRange<std::size_t>(2, 9);
  const auto step = [&](RuleHarness& rule, std::size_t i, bool live) {
    rule.feed_at(frames[i], static_cast<std::int64_t>(i));
    if (live && i % tick_every == 0) {
      // Ticks far enough apart to end grace periods, make workers idle and training stalled.
      rule.tick(kStart + static_cast<std::int64_t>(i) * 2 * kSecond);
    }
  };

  // The topic rules-state as it stands when the process dies.
  std::map<std::string, std::string> state;
  const auto store = [&](const StateRecord& record) {
    if (record.value) {
      state[record.key] = *record.value;
    } else {
      state.erase(record.key);
    }
  };
  RuleHarness before(kRules);
  std::vector<std::string> expected;
  for (std::size_t i = 0; i < frames.size(); ++i) {
    step(before, i, true);
    if (i == snapshot_at) before.engine().snapshot(3, kWhole, store);
    Output output = before.engine().take(3);
    if (i <= crash_at) {
      for (const StateRecord& record : output.log) {
        if (i > snapshot_at) store(record);  // older ones are part of the snapshot
      }
    } else {
      for (const Event& event : output.events) expected.push_back(text(event));
    }
  }

  RuleHarness after(kRules);
  for (const auto& [key, value] : state) {
    RC_ASSERT(after.engine().restore(3, key, value).has_value());
  }
  const auto positions = after.engine().finish_restore(3, {});
  RC_ASSERT(positions.has_value());
  RC_ASSERT(positions->positions->size() == 1U);
  RC_ASSERT(positions->positions->front().where.stream == "telemetry");
  RC_ASSERT(positions->positions->front().next == static_cast<std::int64_t>(snapshot_at) + 1);
  for (auto i = static_cast<std::size_t>(positions->positions->front().next); i <= crash_at; ++i) {
    step(after, i, false);
  }
  RC_ASSERT(after.events().empty());
  after.engine().go_live(3, core::wall_time(kStart));
  std::vector<std::string> actual;
  for (std::size_t i = crash_at + 1; i < frames.size(); ++i) {
    step(after, i, true);
    for (const Event& event : after.engine().take(3).events) actual.push_back(text(event));
  }
  RC_ASSERT(actual == expected);
}

TEST(Replay, DamagedStateIsAnErrorAndNeverACrash) {
  RuleHarness rule(kRules);
  for (const OwnedFrame& frame : story("a", 0, 1, {1, 2, 3, 7, 8})) rule.feed(frame);
  std::vector<StateRecord> records;
  rule.engine().snapshot(3, kWhole, [&](const StateRecord& record) { records.push_back(record); });
  ASSERT_EQ(records.size(), 2U);
  for (std::size_t cut = 0; cut < records[0].value->size(); cut += 97) {
    RuleHarness other(kRules);
    ASSERT_TRUE(other.engine().restore(3, records[0].key, records[0].value->substr(0, cut)));
    ASSERT_TRUE(other.engine().restore(3, records[1].key, *records[1].value));
    EXPECT_FALSE(other.engine().finish_restore(3, {}).has_value()) << cut;
  }
}

TEST(Replay, ChangedRulesStartAnewAndWhatTheyHadFiredIsResolved) {
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
  before.engine().snapshot(3, kWhole, [&](const StateRecord& record) {
    ASSERT_TRUE(after.engine().restore(3, record.key, *record.value));
  });
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
