// With all built-in rules active, a step of many tensors makes as many allocations as one of few: none
// per row once the units are known. Counted, in a program of its own because it replaces operator
// new.
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

/// Every built-in rule: those that need a selection take all weights or gradients.
std::string all_rules() {
  std::string out;
  for (const RuleDescriptor& rule : builtin_rules()) {
    const std::string name(rule.name);
    std::string with;
    if (!make_rule(name)) with = "collection_names: [weights]";
    if (name == "tensor_variance") with = "collection_names: [gradients], max_threshold: 1000";
    if (name == "similar_across_runs") {
      with = "collection_names: [losses], other_trials: 4e3046d4-8c1f-5278-82e3-ea3595bc5999";
    }
    out += "  - {use: " + name + (with.empty() ? "" : ", with: {" + with + "}") + "}\n";
  }
  return out;
}

/// Allocations of the engine while it takes steps 100…199 of so many tensors and a loss; what it
/// needs to know them first is not counted. Half of the tensors are weights, which move a little.
std::size_t made(std::size_t tensors) {
  constexpr std::int64_t kWarm = 100;
  constexpr std::int64_t kSteps = 200;
  RuleHarness rule(read_rules_text(all_rules()).config, {});
  FakeWorker worker;
  rule.feed(worker.start());
  std::vector<Entry> names{{core::DictionaryType::scalar, "loss", Role::loss}};
  for (std::size_t i = 0; i < tensors; ++i) {
    names.push_back({core::DictionaryType::tensor, "t" + std::to_string(i),
                     i % 2 == 0 ? Role::weight : Role::gradient});
  }
  rule.feed(worker.dictionary(names));
  std::vector<OwnedFrame> frames;
  for (std::int64_t step = 0; step < kSteps; ++step) {
    std::vector<core::SummaryRow> rows;
    std::vector<Statistic> statistics;
    for (std::size_t i = 0; i < tensors; ++i) {
      const bool weight = i % 2 == 0;
      const double value =
          1 + 0.001 * static_cast<double>(step % 7) + 0.01 * static_cast<double>(i);
      rows.push_back(summarize({"t" + std::to_string(i),
                                {value, -0.5 * value, 0.25, 0.1},
                                weight ? Role::weight : Role::gradient}));
      const auto row = static_cast<std::uint32_t>(i);
      if (!weight) continue;
      statistics.push_back({core::SparseStat::delta_l2, row, 0.001});
      statistics.push_back({core::SparseStat::prev_l2, row, 1.2});
      statistics.push_back({core::SparseStat::delta_from_step, row, static_cast<double>(step - 1)});
    }
    frames.push_back(worker.summary(Mode::train, step, rows, statistics));
    frames.push_back(
        worker.scalars(Mode::train, {{"loss", step, 10.0 / (1.0 + static_cast<double>(step))}}));
    frames.push_back(worker.step_end(Mode::train, step));
  }
  std::size_t before = 0;
  for (std::size_t i = 0; i < frames.size(); ++i) {
    if (i == kWarm * 3) before = g_made.load();
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
  return count / (kSteps - kWarm);
}

TEST(RuleAllocations, TheCounterCounts) {
  const std::size_t before = g_made.load();
  std::vector<int> numbers(7);
  EXPECT_EQ(g_made.load() - before, 1U);
}

TEST(RuleAllocations, NonePerRowWithAllRules) {
  const std::size_t few = made(20);
  const std::size_t many = made(220);
  EXPECT_EQ(many, few) << "allocations per step";
  RecordProperty("allocations_per_step", static_cast<int>(few));
}

}  // namespace
}  // namespace tocsin::rules
