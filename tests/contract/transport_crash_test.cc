// kill -9 at random instants: outputs and positions are all there or not at all, nothing twice.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <map>
#include <random>
#include <set>
#include <thread>

#include "ingest/journal_directory.h"
#include "ingest/journal_publisher.h"
#include "ingest/journal_source.h"
#include "tests/contract/transport_backends.h"
#include "tests/support/kafka_fixture.h"

namespace tocsin::tests {
namespace {

namespace fs = std::filesystem;
using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::seconds;

std::unique_ptr<ingest::JournalPublisher> journal_writer(const std::string& directory,
                                                         const std::string& name,
                                                         core::Telemetry& telemetry) {
  static core::NullLog log;
  ingest::JournalWriterOptions options;
  options.directory = directory;
  options.writer = name;
  options.topics = {"telemetry", "issues", "rules-state"};
  options.compacted = {"rules-state"};
  options.segment_bytes = 16 * 1024;  // many rolls, so that some are hit
  options.now = [] {
    return std::chrono::system_clock::now().time_since_epoch() / std::chrono::nanoseconds{1};
  };
  auto opened = ingest::JournalPublisher::open(options, log, telemetry);
  return opened ? std::move(*opened) : nullptr;
}

std::unique_ptr<ingest::JournalSource> journal_reader(const std::string& directory,
                                                      std::vector<std::string> topics,
                                                      const std::string& own,
                                                      core::Telemetry& telemetry) {
  static core::NullLog log;
  ingest::SourceOptions options;
  options.topics = std::move(topics);
  options.own_writer = own;
  return std::make_unique<ingest::JournalSource>(directory, options, false, log, telemetry);
}

/// The child: consume, commit, until killed. Never returns to the test.
[[noreturn]] void run_engine(const std::string& directory, std::uint32_t seed) {
  core::NullTelemetry telemetry;
  auto publisher = journal_writer(directory, "engine", telemetry);
  auto source = journal_reader(directory, {"telemetry"}, "engine", telemetry);
  if (publisher == nullptr) ::_exit(3);
  std::mt19937 random(seed);
  for (;;) {
    std::vector<core::OutRecord> out;
    const auto polled =
        source->poll(milliseconds{10}, 1 + random() % 9, [&](const core::RecordView& view) {
          const std::string value(view.text());
          out.push_back(record("issues", "run", value));
          out.push_back(record("rules-state", "unit", value));
        });
    if (!polled) ::_exit(4);
    if (*polled > 0 && !publisher->commit(out, source->positions())) ::_exit(5);
  }
}

TEST(JournalCrash, KilledAtAnyInstantOutputsAndPositionsAgree) {
  constexpr int kSeeds = 40;
  constexpr int kInputs = 20'000;
  const auto directory = (fs::temp_directory_path() / unique_name("tocsin-crash")).string();
  ASSERT_TRUE(ingest::prepare_journal(directory, "here", 1));
  core::NullTelemetry telemetry;
  {
    auto hook = journal_writer(directory, "hook-1", telemetry);
    ASSERT_NE(hook, nullptr);
    for (int i = 0; i < kInputs; ++i) {
      ASSERT_TRUE(hook->publish(record("telemetry", "run", std::to_string(i))));
    }
  }
  std::size_t progress = 0;
  for (std::uint32_t seed = 1; seed <= kSeeds; ++seed) {
    const pid_t child = ::fork();
    if (child == 0) run_engine(directory, seed);
    std::mt19937 random(seed);
    std::this_thread::sleep_for(microseconds{3000 + random() % 20'000});
    ::kill(child, SIGKILL);
    int status = 0;
    ::waitpid(child, &status, 0);
    ASSERT_TRUE(WIFSIGNALED(status)) << "seed " << seed << ": it ended by itself, " << status;

    auto issues = journal_reader(directory, {"issues"}, "", telemetry);
    std::size_t count = 0;
    for (;;) {
      const auto polled = issues->poll(milliseconds{0}, 1000, [&](const core::RecordView& view) {
        ASSERT_EQ(view.text(), std::to_string(count)) << "seed " << seed;
        ++count;
      });
      ASSERT_TRUE(polled) << polled.error().message;
      if (*polled == 0) break;
    }
    const auto positions = ingest::read_positions(directory, "engine");
    const auto at = positions.find("hook-1");
    // hook-1's own snapshots take sequence numbers too, so the position is counted by reading on.
    auto rest = journal_reader(directory, {"telemetry"}, "engine", telemetry);
    std::optional<std::string> next;
    const auto polled =
        rest->poll(milliseconds{0}, 1, [&](const core::RecordView& view) { next = view.text(); });
    ASSERT_TRUE(polled) << polled.error().message;
    if (count < kInputs) {
      EXPECT_EQ(next, std::to_string(count)) << "seed " << seed;
    }
    EXPECT_TRUE(count == 0 || at != positions.end());
    std::string newest;
    ASSERT_TRUE(issues->read_all("rules-state", 0,
                                 [&](const core::RecordView& view) { newest = view.text(); }));
    EXPECT_EQ(newest, count == 0 ? "" : std::to_string(count - 1)) << "seed " << seed;
    progress = std::max(progress, count);
  }
  EXPECT_GT(progress, 200U);  // it was killed at work, not before it
  std::error_code ignored;
  fs::remove_all(directory, ignored);
}

class Worker {
 public:
  Worker(const std::string& servers, const std::string& prefix) {
    std::array<int, 2> pipe{};
    EXPECT_EQ(::pipe(pipe.data()), 0);
    child_ = ::fork();
    if (child_ == 0) {
      ::dup2(pipe[1], STDOUT_FILENO);
      ::execl(TOCSIN_CRASH_WORKER, "crash_worker", servers.c_str(), prefix.c_str(), nullptr);
      ::_exit(127);
    }
    ::close(pipe[1]);
    output_ = pipe[0];
  }
  ~Worker() {
    kill();
    ::close(output_);
  }
  /// Waits until it has committed something: it is at work now.
  bool committed() {
    char byte = 0;
    return ::read(output_, &byte, 1) == 1;
  }
  void kill() {
    if (child_ == 0) return;
    ::kill(child_, SIGKILL);
    int status = 0;
    ::waitpid(child_, &status, 0);
    child_ = 0;
  }

 private:
  pid_t child_ = 0;
  int output_ = -1;
};

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
    Worker worker(*servers, backend.topics().prefix);
    ASSERT_TRUE(worker.committed());
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
