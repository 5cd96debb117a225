// The same stream leaves the same snapshot, byte for byte, whatever stood in memory before: every
// byte of a state is a member's or zero.
#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <new>

#include "rules/contract/archive.h"
#include "tests/unit/rules/state_topic.h"

namespace {
int old_memory = 0;  // what stands in memory that is handed out
}  // namespace

// Not inlined: GCC 12 else takes malloc and delete for a mismatched pair. All forms: a sanitizer would
// else allocate for the one that we free for.
__attribute__((noinline)) void* operator new(std::size_t size, const std::nothrow_t&) noexcept {
  void* const out = std::malloc(size == 0 ? 1 : size);
  if (out != nullptr) std::memset(out, old_memory, size);
  return out;
}
__attribute__((noinline)) void* operator new(std::size_t size) {
  if (void* memory = operator new(size, std::nothrow)) return memory;
  throw std::bad_alloc();
}
__attribute__((noinline)) void operator delete(void* memory) noexcept { std::free(memory); }
__attribute__((noinline)) void operator delete(void* memory, std::size_t) noexcept {
  std::free(memory);
}

namespace tocsin::rules {
namespace {

using namespace stories;  // NOLINT: the stories are this file's language

// Rules whose structures have had padding, and of every shape.
constexpr char kMore[] =
    "\n  - {use: weight_update_ratio, name: moves}\n"
    "  - {use: update_large, with: {num_steps: 1}}\n"
    "  - {use: loss_spike}\n"
    "  - {use: mode_mismatch}\n"
    "  - {use: overtraining}\n"
    "  - {use: saturated_activation}\n"
    "  - {use: dead_relu}\n"
    "  - {use: input_range}\n"
    "  - {use: tensor_variance, with: {max_threshold: 1, tensor_regex: .*}}\n"
    "  - {use: unchanged_tensor, with: {tensor_regex: .*, num_steps: 2}}\n"
    "  - {use: chance_level}\n"
    "  - {use: straggler}\n"
    "  - {use: step_outlier}\n"
    "  - {use: create_xgboost_report}\n"
    "  - {use: host_memory_growth}\n"
    "  - {name: slow, select: 'metric(\"loss\")', window: last 4, when: 'mean(value) > 0.5'}\n"
    "  - {name: worst, select: 'tensor(\".*\")', when: 'across(max, abs_max) > 0.9'}\n"
    "  - {name: then, sequence: [slow, worst], within: 5 steps}";

std::vector<OwnedFrame> stream() {
  std::vector<int> choices;
  choices.reserve(60);
  for (int i = 0; i < 60; ++i) choices.push_back(i * 37 % 101);
  std::vector<OwnedFrame> frames =
      interleave({story("a", 0, 2, choices), story("a", 1, 2, choices)}, {3, 1, 4, 1, 5, 9, 2, 6});
  frames.pop_back();  // it goes on
  FakeWorker worker("digits", "b");
  frames.push_back(worker.start());
  for (int i = 0; i < 12; ++i) {
    frames.push_back(worker.tensors(Mode::train, i,
                                    {{"relu_0/output_0", {0, 0, 0.5 * i}, Role::output},
                                     {"tanh_0/output_0", {1, -1, 0.999}, Role::output},
                                     {"input_0", {1000, 0, -5}, Role::input},
                                     {"fc/weight", {1.0 + i, 2, 3}, Role::weight}}));
    frames.push_back(worker.scalars(
        Mode::train,
        {{"loss", i, 1.0 / (1 + i)}, {"model_training", i, double(i % 2)}, {"accuracy", i, 0.1}}));
    frames.push_back(worker.step_end(Mode::train, i));
  }
  return frames;
}

// Fills the stack below with what temporaries would find there.
[[gnu::noinline]] void scribble(int with) {
  volatile char page[16384];
  for (volatile char& byte : page) byte = static_cast<char>(with);
}

std::map<std::string, std::string> state_over(int memory) {
  const std::vector<OwnedFrame> frames = stream();
  old_memory = memory;
  StateTopic topic(std::string(kRules) + kMore);
  for (std::size_t i = 0; i < frames.size(); ++i) {
    scribble(memory);
    topic.feed(frames[i]);
    if (i % 40 == 0) topic.tick(kStart + static_cast<std::int64_t>(i) * kSecond);
  }
  while (topic.piece(100'000)) topic.commit();
  topic.commit();
  old_memory = 0;
  return topic.state();
}

TEST(SameBytes, OfASnapshotWhateverStoodInMemory) {
#if !defined(TOCSIN_CLEARS_PADDING)
  GTEST_SKIP() << "this compiler cannot clear padding";
#endif
  const auto one = state_over(0x55);
  const auto other = state_over(0xAA);
  ASSERT_GE(one.size(), 6U) << "head, workers, names, rosters, slots, index";
  ASSERT_EQ(one.size(), other.size());
  for (auto a = one.begin(), b = other.begin(); a != one.end(); ++a, ++b) {
    ASSERT_EQ(a->first, b->first);
    ASSERT_EQ(a->second.size(), b->second.size()) << a->first;
    std::string differs;
    for (std::size_t i = 0; i < a->second.size(); ++i) {
      if (a->second[i] != b->second[i]) differs += std::to_string(i) + " ";
    }
    EXPECT_EQ(differs, "") << "bytes of " << a->first;
  }
}

}  // namespace
}  // namespace tocsin::rules
