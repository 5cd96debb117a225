// One reader of `commands` per node: who reads, who is told, and what happens when the reader goes.
#include "collectors/hook/commands/command_reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstddef>
#include <thread>

#include "collectors/hook/commands/command_message.h"
#include "collectors/hook/commands/local_socket.h"
#include "tests/simulation/broker.h"
#include "tests/unit/collectors/hook/fixture.h"

namespace tocsin::hook {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

std::string unique_share() {
  static std::atomic<int> next{0};
  return "tocsin-test/" + std::to_string(getpid()) + "/" + std::to_string(++next);
}

template <typename Condition>
bool within(seconds limit, Condition&& condition) {
  const auto until = std::chrono::steady_clock::now() + limit;
  while (!condition()) {
    if (std::chrono::steady_clock::now() > until) return false;
    std::this_thread::sleep_for(milliseconds(1));
  }
  return true;
}

const std::string kRun = core::to_text(make_identity().run);

core::OutRecord record(const std::string& slot, std::optional<std::string> value) {
  core::OutRecord out;
  out.topic = "commands";
  out.key = kRun + "/" + slot;
  out.value = std::move(value);
  out.headers = {{"ce_id", "cmd_1"}, {"not_ours", "x"}};
  return out;
}

/// A client's command thread, with what it was told.
class Listening {
 public:
  Listening(simulation::MemoryBroker& broker, const std::string& share, std::atomic<int>& opened)
      : reader_(
            share, kRun + "/",
            [&broker, &opened]() -> core::Result<std::unique_ptr<core::RecordSource>> {
              ++opened;
              ingest::SourceOptions options;
              options.topics = {"commands"};
              options.start = ingest::Start::beginning;
              return broker.source(options);
            },
            [this](const core::RecordView& view) {
              const std::lock_guard lock(mutex_);
              told_[std::string(*view.key)] =
                  view.tombstone ? "withdrawn"
                                 : std::string(view.text()) + "|" +
                                       std::string(view.header("ce_id").value_or(""));
            }),
        thread_([this] {
          while (!stop_) (void)reader_.turn(seconds(5));
          reader_.close();
        }) {}
  ~Listening() { stop(); }
  void stop() {
    stop_ = true;
    reader_.wake();
    if (thread_.joinable()) thread_.join();
  }
  [[nodiscard]] std::string told(const std::string& slot) {
    const std::lock_guard lock(mutex_);
    return told_[kRun + "/" + slot];
  }
  [[nodiscard]] std::size_t told_keys() {
    const std::lock_guard lock(mutex_);
    return told_.size();
  }
  [[nodiscard]] CommandReader::Role role() const { return reader_.role(); }

 private:
  std::mutex mutex_;
  std::map<std::string, std::string> told_;
  std::atomic<bool> stop_{false};
  CommandReader reader_;
  std::thread thread_;
};

class CommandReaderTest : public ::testing::Test {
 protected:
  std::unique_ptr<Listening> open() {
    return std::make_unique<Listening>(broker_, share_, opened_);
  }
  bool settled(const std::unique_ptr<Listening>& reader) {
    return within(seconds(5), [&] { return reader->role() != CommandReader::Role::none; });
  }
  simulation::MemoryBroker broker_;
  std::string share_ = unique_share();
  std::atomic<int> opened_{0};
};

TEST_F(CommandReaderTest, OneOfManyReadsAndAllAreTold) {
  std::vector<std::unique_ptr<Listening>> readers;
  for (int i = 0; i < 16; ++i) readers.push_back(open());
  for (const auto& one : readers) ASSERT_TRUE(settled(one));
  broker_.append(record("stop", "{}"));
  for (const auto& one : readers) {
    EXPECT_TRUE(within(seconds(5), [&] { return one->told("stop") == "{}|cmd_1"; }));
  }
  EXPECT_EQ(opened_, 1);
  EXPECT_EQ(
      std::count_if(readers.begin(), readers.end(),
                    [](const auto& one) { return one->role() == CommandReader::Role::leader; }),
      1);
}

TEST_F(CommandReaderTest, WhoComesLaterGetsTheNewestOfEverySlotAlsoAWithdrawal) {
  const auto leader = open();
  broker_.append(record("stop", "old"));
  broker_.append(record("stop", "new"));
  broker_.append(record("capture", "plan"));
  broker_.append(record("capture", std::nullopt));
  ASSERT_TRUE(within(seconds(5), [&] { return leader->told("capture") == "withdrawn"; }));
  const auto late = open();
  EXPECT_TRUE(within(seconds(5), [&] { return late->told("capture") == "withdrawn"; }));
  EXPECT_TRUE(within(seconds(5), [&] { return late->told("stop") == "new|cmd_1"; }));
  EXPECT_EQ(late->role(), CommandReader::Role::follower);
}

TEST_F(CommandReaderTest, RecordsOfOtherRunsAreNotGivenOn) {
  const auto leader = open();
  const auto other = open();
  core::OutRecord foreign = record("stop", "{}");
  foreign.key = "4e3046d4-8c1f-5278-82e3-000000000000/stop";
  broker_.append(foreign);
  broker_.append(record("stop", "{}"));
  for (const auto* one : {leader.get(), other.get()}) {
    EXPECT_TRUE(within(seconds(5),
                       [&] { return const_cast<Listening*>(one)->told("stop") == "{}|cmd_1"; }));
    EXPECT_EQ(const_cast<Listening*>(one)->told_keys(), 1U);
  }
}

TEST_F(CommandReaderTest, WhenTheReaderGoesAnotherTakesOverAndNothingIsMissed) {
  auto leader = open();
  ASSERT_TRUE(settled(leader));
  const auto first = open();
  const auto second = open();
  ASSERT_TRUE(settled(first));
  ASSERT_TRUE(settled(second));
  leader->stop();
  broker_.append(record("stop", "{}"));
  EXPECT_TRUE(within(seconds(5), [&] { return first->told("stop") == "{}|cmd_1"; }));
  EXPECT_TRUE(within(seconds(5), [&] { return second->told("stop") == "{}|cmd_1"; }));
  EXPECT_EQ(opened_, 2);
}

// The name belongs to the process: kill -9 frees it. A child that the killed process forked (a data
// loader) lives on, and must not hold it.
TEST_F(CommandReaderTest, KilledProcessFreesTheNameEvenWhenItsChildLives) {
  int ready[2];
  int hold[2];
  ASSERT_EQ(pipe(ready), 0);
  ASSERT_EQ(pipe(hold), 0);
  const pid_t trainer = fork();
  if (trainer == 0) {
    const auto listener = listen_locally(share_);
    if (fork() == 0) {
      close_sockets_in_child();  // what the library's fork handler does
      (void)!write(ready[1], listener ? "y" : "n", 1);
      close(hold[1]);
      char byte = 0;
      (void)!::read(hold[0], &byte, 1);
      _exit(0);
    }
    pause();
    _exit(0);
  }
  char byte = 0;
  ASSERT_EQ(::read(ready[0], &byte, 1), 1);
  EXPECT_EQ(byte, 'y');
  EXPECT_FALSE(listen_locally(share_));
  kill(trainer, SIGKILL);
  waitpid(trainer, nullptr, 0);
  EXPECT_TRUE(listen_locally(share_));
  for (const int end : {ready[0], ready[1], hold[0], hold[1]}) close(end);
}

TEST_F(CommandReaderTest, HolderThatNeverListensIsGivenUp) {
  const LocalSocket holder(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_un where{};
  where.sun_family = AF_UNIX;
  std::copy(share_.begin(), share_.end(), where.sun_path + 1);
  const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + share_.size());
  ASSERT_EQ(bind(holder.get(), reinterpret_cast<const sockaddr*>(&where), size), 0);
  const auto reader = open();
  ASSERT_TRUE(settled(reader));
  EXPECT_EQ(reader->role(), CommandReader::Role::alone);
  broker_.append(record("stop", "{}"));
  EXPECT_TRUE(within(seconds(5), [&] { return reader->told("stop") == "{}|cmd_1"; }));
}

TEST_F(CommandReaderTest, WithoutANameToShareItReadsForItself) {
  share_.clear();
  const auto one = open();
  const auto other = open();
  broker_.append(record("stop", "{}"));
  EXPECT_TRUE(within(seconds(5), [&] { return one->told("stop") == "{}|cmd_1"; }));
  EXPECT_TRUE(within(seconds(5), [&] { return other->told("stop") == "{}|cmd_1"; }));
  EXPECT_EQ(one->role(), CommandReader::Role::alone);
  EXPECT_EQ(opened_, 2);
}

TEST_F(CommandReaderTest, ClosingDoesNotWaitForTheLongPoll) {
  const auto leader = open();
  const auto follower = open();
  ASSERT_TRUE(settled(leader));
  ASSERT_TRUE(settled(follower));
  const auto begin = std::chrono::steady_clock::now();
  follower->stop();
  leader->stop();
  EXPECT_LT(std::chrono::steady_clock::now() - begin, seconds(1));
}

TEST(CommandMessage, DamagedBytesAreNoMessage) {
  std::string message;
  with_view(record("stop", "{}"),
            [&](const core::RecordView& view) { message = encode_command_message(view); });
  EXPECT_EQ(message_size(message), message.size());
  EXPECT_EQ(message_size("abc"), 0U);
  EXPECT_EQ(message_size(std::string(8, '\xff')), std::nullopt);
  EXPECT_EQ(message_size(std::string(8, '\0')), std::nullopt);
  const auto ignore = [](const core::RecordView&) {};
  EXPECT_TRUE(decode_command_message(message, ignore));
  for (std::size_t size = 1; size < message.size(); ++size) {
    (void)decode_command_message(message.substr(0, size), ignore);  // never reads beyond
  }
  EXPECT_FALSE(decode_command_message(message.substr(0, message.size() - 1), ignore));
  EXPECT_TRUE(decode_command_message(keep_alive_message(), ignore));
}

}  // namespace
}  // namespace tocsin::hook
