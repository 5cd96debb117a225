// kill -9 at random instants: outputs and positions are all there or not at all, nothing twice.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <map>
#include <optional>
#include <random>
#include <thread>

#include "tests/contract/child.h"
#include "tests/contract/transport_backends.h"
#include "tests/support/kafka_fixture.h"

namespace tocsin::tests {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::seconds;

TEST(JournalCrash, KilledAtAnyInstantOutputsAndPositionsAgree) {
  constexpr int kSeeds = 40;
  constexpr std::size_t kInputs = 40'000;
  auto opened = Backend::open(BackendKind::journal);
  ASSERT_TRUE(opened) << opened.error().message;
  auto& backend = **opened;
  {
    auto hook = backend.producer();
    for (std::size_t i = 0; i < kInputs; ++i) {
      ASSERT_TRUE(hook->publish(record("telemetry", "run", std::to_string(i))));
    }
    ASSERT_TRUE(hook->flush(seconds{20}));
  }
  std::size_t progress = 0;
  for (std::uint32_t seed = 1; seed <= kSeeds; ++seed) {
    Child engine({TOCSIN_JOURNAL_WORKER, "engine", backend.directory(), std::to_string(seed)});
    ASSERT_TRUE(engine.line()) << "seed " << seed << ": it ended by itself";
    std::mt19937 random(seed);
    std::this_thread::sleep_for(microseconds{random() % 20'000});
    ASSERT_EQ(engine.kill(), -SIGKILL) << "seed " << seed;

    auto issues = backend.observer({"issues"});
    const auto all = read_to_end(*issues);
    ASSERT_TRUE(all) << all.error().message;
    for (std::size_t i = 0; i < all->size(); ++i) {
      ASSERT_EQ((*all)[i].value, std::to_string(i)) << "seed " << seed;
      ASSERT_EQ((*all)[i].offset, static_cast<std::int64_t>(i)) << "seed " << seed;
    }
    // The group stands exactly behind what it has answered.
    ingest::SourceOptions options;
    options.group = "engine";
    options.topics = {"telemetry"};
    auto rest = backend.source(options);
    std::optional<std::string> next;
    const auto polled =
        rest->poll(milliseconds{0}, 1, [&](const core::RecordView& view) { next = view.text(); });
    ASSERT_TRUE(polled) << polled.error().message;
    if (all->size() < kInputs) {
      EXPECT_EQ(next, std::to_string(all->size())) << "seed " << seed;
    }
    std::string newest;
    ASSERT_TRUE(issues->read_all("rules-state", 0, std::nullopt,
                                 [&](const core::RecordView& view) { newest = view.text(); }));
    EXPECT_EQ(newest, std::to_string(all->size() - 1)) << "seed " << seed;
    progress = std::max(progress, all->size());
    if (progress == kInputs) break;  // on a fast machine: nothing is left to be killed at
  }
  EXPECT_GT(progress, 200U);  // it was killed at work, not before it
}

TEST(JournalCrash, AHookKilledWithinATransactionLeavesWholeOnesOnly) {
  auto opened = Backend::open(BackendKind::journal);
  ASSERT_TRUE(opened) << opened.error().message;
  auto& backend = **opened;
  for (std::uint32_t seed = 1; seed <= 20; ++seed) {
    Child hook({TOCSIN_JOURNAL_WORKER, "hook", backend.directory()});
    ASSERT_TRUE(hook.line()) << "it ended by itself";
    std::mt19937 random(seed);
    std::this_thread::sleep_for(microseconds{random() % 5000});
    hook.kill();
  }
  auto source = backend.observer({"telemetry"});
  const auto all = read_to_end(*source);
  ASSERT_TRUE(all) << all.error().message;
  ASSERT_GT(all->size(), 200U);
  ASSERT_EQ(all->size() % 10, 0U);
  for (std::size_t i = 0; i < all->size(); ++i) {
    ASSERT_EQ((*all)[i].offset, static_cast<std::int64_t>(i));
    ASSERT_EQ((*all)[i].value, (*all)[i / 10 * 10].value);
  }
}

TEST(KafkaCrash, KilledAtAnyInstantEveryInputIsAnsweredOnce) {
  constexpr int kSeeds = 3;
  constexpr int kInputs = 6000;
  auto opened = Backend::open(BackendKind::kafka);
  ASSERT_TRUE(opened) << opened.error().message;
  auto& backend = **opened;
  const auto servers = kafka_bootstrap_servers();
  {
    auto hook = backend.producer();
    for (int i = 0; i < kInputs; ++i) {
      ASSERT_TRUE(
          hook->publish(record("telemetry", "run-" + std::to_string(i % 4), std::to_string(i))));
    }
    ASSERT_TRUE(hook->flush(seconds{20}));
  }
  for (std::uint32_t seed = 1; seed <= kSeeds; ++seed) {
    Child worker({TOCSIN_CRASH_WORKER, *servers, backend.topics().prefix});
    ASSERT_TRUE(worker.line());
    std::mt19937 random(seed);
    std::this_thread::sleep_for(milliseconds{random() % 300});
  }
  // A last one finishes the work, in this process.
  auto source = backend.member({"telemetry"});
  auto committer = backend.committer(*source);
  const auto deadline = std::chrono::steady_clock::now() + seconds{60};
  while (!source->at_end() && std::chrono::steady_clock::now() < deadline) {
    std::vector<core::OutRecord> out;
    const auto polled = source->poll(milliseconds{100}, 500, [&](const core::RecordView& view) {
      out.push_back(record("issues", std::string(*view.key), std::string(view.text())));
      out.push_back(record("rules-state", std::string(*view.key), std::string(view.text())));
    });
    ASSERT_TRUE(polled) << polled.error().message;
    if (out.empty()) continue;
    const auto status = committer->commit(out, source->positions());
    ASSERT_TRUE(status) << status.error().message;
  }
  ASSERT_TRUE(source->at_end());
  for (const char* topic : {"issues", "rules-state"}) {
    auto reader = backend.observer({topic});
    const auto all = read_to_end(*reader);
    ASSERT_TRUE(all) << all.error().message;
    std::map<std::string, int> seen;
    std::map<std::string, int> last;
    for (const auto& kept : *all) {
      ++seen[kept.value];
      const auto [it, first] = last.try_emplace(*kept.key, -1);
      EXPECT_LT(it->second, std::stoi(kept.value)) << topic;
      it->second = std::stoi(kept.value);
    }
    EXPECT_EQ(seen.size(), static_cast<std::size_t>(kInputs)) << topic;
    EXPECT_EQ(all->size(), static_cast<std::size_t>(kInputs)) << topic << ": some came twice";
  }
}

}  // namespace
}  // namespace tocsin::tests
