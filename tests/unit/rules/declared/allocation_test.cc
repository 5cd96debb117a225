// Judging a record by declarative rules allocates nothing once their units are known: counted, in a
// program of its own because it replaces operator new.
#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <new>
#include <string>
#include <vector>

#include "tests/support/rule_harness.h"

namespace {
std::atomic<std::size_t> g_made{0};
}  // namespace

// Not inlined: GCC 12 else takes malloc and delete for a mismatched pair.
__attribute__((noinline)) void* operator new(std::size_t size) {
  ++g_made;
  if (void* memory = std::malloc(size == 0 ? 1 : size)) return memory;
  throw std::bad_alloc();
}
// All forms: a sanitizer would else allocate for the one that we free for.
__attribute__((noinline)) void* operator new(std::size_t size, const std::nothrow_t&) noexcept {
  ++g_made;
  return std::malloc(size == 0 ? 1 : size);
}
__attribute__((noinline)) void operator delete(void* memory) noexcept { std::free(memory); }
__attribute__((noinline)) void operator delete(void* memory, std::size_t) noexcept {
  std::free(memory);
}

namespace tocsin::rules {
namespace {

using namespace testing_support;  // NOLINT: the harness is this file's language
using core::Mode;
using core::Role;

/// Frames of 160 steps of a run: 20 tensors, a loss, spans, ends of steps, an evaluation step behind every
/// fourth, and samples of a node.
std::vector<OwnedFrame> frames_of(const std::string& run, const std::string& node) {
  FakeWorker worker("digits", run);
  FakeWorker agent("digits", run, core::kNodeAgentRank);
  agent.header.worker = core::name_hash(node);
  std::vector<OwnedFrame> frames{worker.start()};
  std::vector<Entry> names{{core::DictionaryType::scalar, "loss", Role::loss},
                           {core::DictionaryType::track, "phase"},
                           {core::DictionaryType::span_name, "data_wait"}};
  for (int i = 0; i < 20; ++i) {
    names.push_back({core::DictionaryType::tensor, "g" + std::to_string(i), Role::gradient});
  }
  frames.push_back(worker.dictionary(names));
  frames.push_back(
      agent.dictionary({{core::DictionaryType::node, node},
                        {core::DictionaryType::series, "hw.gpu.utilization{hw.id=0}"}}));
  for (std::int64_t step = 0; step < 160; ++step) {
    std::vector<TensorValues> tensors;
    for (int i = 0; i < 20; ++i) tensors.push_back({"g" + std::to_string(i), {1.0 + i, 0.5}});
    frames.push_back(worker.tensors(Mode::train, step, tensors));
    frames.push_back(worker.scalars(Mode::train, {{"loss", step, 2.0}}));
    frames.push_back(worker.spans(Mode::train, step, {{"data_wait", 0.02}, {"data_wait", 0.01}}));
    frames.push_back(worker.step_end(Mode::train, step));
    if (step % 4 == 3) {
      frames.push_back(worker.scalars(Mode::eval, {{"loss", step / 4, 2.0}}));
      frames.push_back(worker.step_end(Mode::eval, step / 4));
    }
    frames.push_back(agent.system({{"hw.gpu.utilization{hw.id=0}", worker.header.time, 0.5}}));
  }
  return frames;
}

void feed(RuleHarness& rule, const OwnedFrame& frame) {
  const core::FrameBody body;
  rule.engine().on_frame(frame.view(), body,
                         {"tocsin.telemetry.v1", "telemetry", 3, rule.offset++, {}},
                         core::wall_time(frame.header.time));
}

/// Allocations of the engine while it takes the later five eighths of them. `before`: a run that is
/// read first, as a whole.
std::size_t made(const std::string& rules, const std::string& before = {}) {
  RuleHarness rule(rules);
  if (!before.empty()) {
    for (const OwnedFrame& frame : frames_of(before, "node-1")) rule.feed(frame);
  }
  const std::vector<OwnedFrame> frames = frames_of("exploding", "node-7");
  for (std::size_t i = 0; i < 3; ++i) rule.feed(frames[i]);
  std::size_t first = 0;
  for (std::size_t i = 3; i < frames.size(); ++i) {
    if (i == frames.size() * 60 / 160) first = g_made.load();
    feed(rule, frames[i]);
  }
  const std::size_t count = g_made.load() - first;
  for (const core::Issue& issue : rule.firing()) {
    ADD_FAILURE() << "a hit may allocate, and this measures the quiet path: " << issue.summary;
  }
  return count;
}

/// What a rule allocates beyond those beside it.
std::size_t more(const std::string& rule, const std::string& before = {}) {
  const std::string others =
      "  - exploding_tensor\n"
      "  - {use: vanishing_gradient}\n";
  // A rule over completed steps has the engine complete them: that is no matter of its own.
  const std::string waits =
      "  - {name: w, select: 'metric(\"none\")', by: [metric], when: 'across(max, value) > 1'}\n";
  const std::size_t plain = made(others + waits, before);
  const std::size_t count = made(others + waits + rule, before);
  EXPECT_GE(count, plain);
  return count - plain;
}

TEST(DeclaredAllocations, TheCounterCounts) {
  const std::size_t before = g_made.load();
  std::vector<int> numbers(7);
  EXPECT_EQ(g_made.load() - before, 1U);
}

TEST(DeclaredAllocations, NoneBeyondThoseOfABuiltInRule) {
  const std::size_t plain = made("  - exploding_tensor");
  const std::size_t declared = made(
      "  - exploding_tensor\n"
      "  - {name: a, select: 'tensor(\".*\")', when: 'nan + posinf > 0'}\n"
      "  - {name: b, select: 'collection(\"gradients\")', window: last 50 steps, when: 'l2 > 10 * "
      "median(l2) or abs(zscore(mean)) > 1000'}\n"
      "  - {name: c, select: 'metric(\"loss\")', window: since start, when: 'ewma(value, 0.1) > 3 "
      "or "
      "quantile(value, 0.9) > 3 or steps_since_min(value) > 1000'}\n"
      "  - {name: d, select: 'tensor(\"g1\")', window: every 10 steps, when: 'mean(l2) < 0'}\n"
      "  - {name: e, select: 'tensor(\"g2\")', window: last 20 steps every 5 steps, when: "
      "'mean(l2) > "
      "2 * previous(mean(l2))'}\n");
  EXPECT_EQ(declared, plain);
}

TEST(DeclaredAllocations, NoneForRulesThatFollowOthers) {
  EXPECT_EQ(
      more("  - {name: s, sequence: [exploding_tensor, vanishing_gradient], within: 50 steps}\n"),
      0U);
  EXPECT_EQ(
      more("  - {name: s, sequence: exploding_tensor, without: vanishing_gradient, within: 5m, "
           "by: [tensor, worker]}\n"),
      0U);
  EXPECT_EQ(more("  - {name: f, select: 'tensor(\".*\")', when: 'l2 > 1e6 and "
                 "fired(\"exploding_tensor\", 50 steps)'}\n"),
            0U);
  EXPECT_EQ(
      more(
          "  - {name: f, select: 'metric(\"loss\")', window: last 20 steps, when: 'mean(value) > 3 "
          "and fired(\"exploding_tensor\")'}\n"),
      0U);
}

TEST(DeclaredAllocations, NoneForFolds) {
  EXPECT_EQ(more("  - {name: a, select: 'collection(\"gradients\")', by: [worker], when: "
                 "'across(max, l2) > 100 * across(mean, l2)'}\n"),
            0U);
  EXPECT_EQ(
      more("  - {name: b, select: 'metric(\"loss\")', by: [metric], window: last 9 steps, when: "
           "'across(spread, mean(value)) > 1'}\n"),
      0U);
  EXPECT_EQ(
      more("  - {name: c, select: 'collection(\"gradients\")', by: [worker], window: every 10 "
           "steps, when: 'across(max, mean(l2)) > 100 * across(mean, mean(l2))'}\n"),
      0U);
  EXPECT_EQ(more("  - {name: d, let: {a: 'tensor(\"g1\")', b: 'tensor(\"g2\")'}, window: every 10 "
                 "steps, when: 'mean(a.l2) > 100 * mean(b.l2)'}\n"),
            0U);
}

TEST(DeclaredAllocations, NoneForStepsAndSpans) {
  EXPECT_EQ(more("  - {name: a, select: step(), by: [run_uid], when: 'across(max, duration) > 10 * "
                 "across(mean, duration)'}\n"),
            0U);
  EXPECT_EQ(more("  - {name: b, select: step(), window: last 9 steps, when: 'duration > 10 * "
                 "median(duration)'}\n"),
            0U);
  EXPECT_EQ(
      more(
          "  - {name: c, select: 'span(\"data_wait\")', window: last 9 steps, when: 'duration > 10 "
          "* median(duration)'}\n"),
      0U);
}

TEST(DeclaredAllocations, NoneForSeveralSelections) {
  EXPECT_EQ(
      more("  - {name: a, let: {t: 'metric(\"loss\"){mode=\"train\"}', e: "
           "'metric(\"loss\"){mode=\"eval\"}'}, window: since start, when: 'mean(e.value) > 2 * "
           "mean(t.value)'}\n"),
      0U);
  EXPECT_EQ(more("  - {name: b, let: {w: 'span(\"data_wait\")', s: step()}, when: 'w.duration > "
                 "s.duration'}\n"),
            0U);
}

TEST(DeclaredAllocations, NoneForSamplesOfNodes) {
  EXPECT_EQ(more("  - {name: a, select: 'system(\"hw.gpu.utilization\")', window: every 2s, when: "
                 "'mean(value) < 20%'}\n"),
            0U);
  EXPECT_EQ(more("  - {name: b, select: 'system(\"hw.gpu.utilization\")', window: last 2s, when: "
                 "'mean(value) < 20%'}\n"),
            0U);
}

// The run that others are compared with keeps what it came to: that grows. The others keep nothing.
TEST(DeclaredAllocations, NoneForARunThatIsComparedWithAnother) {
  const std::string other = core::to_text(core::run_uid_for("digits", "before"));
  EXPECT_EQ(more("  - {name: o, select: 'collection(\"gradients\")', when: 'l2 > 2 * other(\"" +
                     other + "\", l2)'}\n",
                 "before"),
            0U);
}

}  // namespace
}  // namespace tocsin::rules
