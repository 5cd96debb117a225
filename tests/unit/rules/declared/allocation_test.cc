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

/// Allocations of the engine while it takes steps 60…159 of 20 tensors and a loss; its first 60
/// steps are not counted.
std::size_t made(const std::string& rules, bool ends = false) {
  RuleHarness rule(rules);
  FakeWorker worker;
  rule.feed(worker.start());
  std::vector<Entry> names{{core::DictionaryType::scalar, "loss", Role::loss}};
  for (int i = 0; i < 20; ++i) {
    names.push_back({core::DictionaryType::tensor, "g" + std::to_string(i), Role::gradient});
  }
  rule.feed(worker.dictionary(names));
  std::vector<OwnedFrame> frames;
  for (std::int64_t step = 0; step < 160; ++step) {
    std::vector<TensorValues> tensors;
    for (int i = 0; i < 20; ++i) tensors.push_back({"g" + std::to_string(i), {1.0 + i, 0.5}});
    frames.push_back(worker.tensors(Mode::train, step, tensors));
    frames.push_back(worker.scalars(Mode::train, {{"loss", step, 2.0}}));
    if (ends) frames.push_back(worker.step_end(Mode::train, step));
  }
  std::size_t before = 0;
  for (std::size_t i = 0; i < frames.size(); ++i) {
    if (i == frames.size() * 60 / 160) before = g_made.load();
    const core::FrameBody body;
    rule.engine().on_frame(
        frames[i].view(), body,
        {"tocsin.telemetry.v1", "telemetry", 3, rule.offset + static_cast<std::int64_t>(i), {}},
        core::wall_time(frames[i].header.time));
  }
  const std::size_t count = g_made.load() - before;
  for (const core::Issue& issue : rule.firing()) {
    ADD_FAILURE() << "a hit may allocate, and this measures the quiet path: " << issue.summary;
  }
  return count;
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

TEST(DeclaredAllocations, LessThanOnePerStepForRulesThatFollowOthers) {
  const std::string others =
      "  - exploding_tensor\n"
      "  - {use: vanishing_gradient}\n";
  const std::size_t plain = made(others, true);
  const std::size_t following =
      made(others +
               "  - {name: s, sequence: [exploding_tensor, vanishing_gradient], within: 50 steps}\n"
               "  - {name: f, select: 'tensor(\".*\")', when: 'l2 > 1e6 and "
               "fired(\"exploding_tensor\", 50 steps)'}\n",
           true);
  EXPECT_LT(following - plain, 100U) << "in 100 steps of 20 tensors";
}

}  // namespace
}  // namespace tocsin::rules
