// Deaths of real child processes.
#include "collectors/node/process_watch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <fstream>
#include <iterator>
#include <memory>
#include <sstream>
#include <thread>
#include <utility>

namespace tocsin::collectors {
namespace {

using ::testing::IsEmpty;
using ::testing::SizeIs;

std::int64_t start_of(pid_t pid) {
  std::ifstream in("/proc/" + std::to_string(pid) + "/stat");
  const std::string text{std::istreambuf_iterator<char>(in), {}};
  std::istringstream fields(text.substr(text.rfind(')') + 2));
  std::string field;
  for (int i = 3; i <= 22; ++i) fields >> field;
  return std::stoll(field);
}

/// A child that waits, then exits with the code that it is told, or is killed; reaped at the end.
class Child {
 public:
  Child() {
    EXPECT_EQ(pipe(ends_), 0);
    pid_ = fork();
    if (pid_ != 0) {
      process_ = {pid_, start_of(pid_), boot(), own_pid_namespace()};
      return;
    }
    unsigned char code = 0;
    (void)!::read(ends_[0], &code, 1);
    _exit(code);
  }
  ~Child() {
    if (pid_ > 0) {
      kill(pid_, SIGKILL);
      reap();
    }
    close(ends_[0]);
    close(ends_[1]);
  }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;
  void exit_with(unsigned char code) const { (void)!::write(ends_[1], &code, 1); }
  void kill_it() const { kill(pid_, SIGKILL); }
  void reap() {
    if (pid_ > 0) waitpid(std::exchange(pid_, -1), nullptr, 0);
  }
  [[nodiscard]] const WatchedProcess& process() const { return process_; }

 private:
  static std::string boot() {
    std::ifstream in("/proc/sys/kernel/random/boot_id");
    std::string text;
    in >> text;
    return text;
  }
  int ends_[2] = {-1, -1};
  pid_t pid_ = -1;
  WatchedProcess process_;
};

WatchedWorker worker(const std::string& name, std::uint64_t incarnation = 1) {
  return {core::run_uid_for("digits", "a"), name, incarnation};
}

std::vector<Death> deaths(ProcessWatch& watch) {
  const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(5);
  std::vector<Death> found;
  while (found.empty() && std::chrono::steady_clock::now() < until) {
    found = watch.poll();
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return found;
}

class ProcessWatchTest : public ::testing::TestWithParam<std::size_t> {
 protected:
  ProcessWatch watch_{GetParam()};
};
// With a descriptor, and without one: by what stands in /proc.
INSTANTIATE_TEST_SUITE_P(Descriptors, ProcessWatchTest, ::testing::Values(256, 0));

TEST_P(ProcessWatchTest, KilledWorkerIsToldOnce) {
  Child child;
  ASSERT_EQ(watch_.watch(worker("worker_0", 7), child.process()), Watching::alive);
  EXPECT_THAT(watch_.poll(), IsEmpty());
  child.kill_it();
  if (GetParam() == 0) child.reap();
  const auto found = deaths(watch_);
  ASSERT_THAT(found, SizeIs(1));
  EXPECT_EQ(found[0].worker.name, "worker_0");
  EXPECT_EQ(found[0].worker.incarnation, 7U);
  if (GetParam() > 0) {
    EXPECT_EQ(found[0].signal, SIGKILL);
  }
  EXPECT_EQ(found[0].exit_code, std::nullopt);
  EXPECT_THAT(watch_.poll(), IsEmpty());
  EXPECT_EQ(watch_.watch(worker("worker_0", 7), child.process()), Watching::dead);
  EXPECT_THAT(watch_.poll(), IsEmpty());
  EXPECT_EQ(watch_.descriptors(), 0U);
}

TEST_P(ProcessWatchTest, ReusedPidIsAnotherProcess) {
  const Child child;
  WatchedProcess earlier = child.process();
  earlier.pid_start -= 1;
  EXPECT_EQ(watch_.watch(worker("worker_0"), earlier), Watching::dead);
  EXPECT_THAT(watch_.poll(), SizeIs(1));
}

TEST(ProcessWatch, ChildsExitCodeIsKnownAndLeftToWhoWaitsForIt) {
  ProcessWatch watch;
  Child child;
  ASSERT_EQ(watch.watch(worker("worker_0"), child.process()), Watching::alive);
  const pid_t pid = static_cast<pid_t>(child.process().pid);
  child.exit_with(3);
  const auto found = deaths(watch);
  ASSERT_THAT(found, SizeIs(1));
  EXPECT_EQ(found[0].exit_code, 3);
  EXPECT_EQ(found[0].signal, std::nullopt);
  int status = 0;
  EXPECT_EQ(waitpid(pid, &status, WNOHANG), pid);
  EXPECT_EQ(WEXITSTATUS(status), 3);
  const core::Lifecycle told = to_lifecycle(found[0]);
  EXPECT_EQ(told.event, core::LifecycleEvent::died);
  EXPECT_EQ(told.died_worker, "worker_0");
  EXPECT_EQ(told.exit_code, 3);
}

/// A grandchild, so that nobody here is its parent, which waits for it when it is told to.
class Stranger {
 public:
  Stranger() {
    int told[2];
    EXPECT_EQ(pipe(told), 0);
    EXPECT_EQ(pipe(go_), 0);
    parent_ = fork();
    if (parent_ == 0) {
      signal(SIGTERM, SIG_DFL);
      close(go_[1]);
      const pid_t stranger = fork();
      unsigned char code = 0;
      if (stranger == 0) {
        if (::read(go_[0], &code, 1) != 1) pause();
        _exit(code);
      }
      (void)!::write(told[1], &stranger, sizeof stranger);
      raise(SIGSTOP);  // until it may wait for the other
      waitpid(stranger, nullptr, 0);
      (void)!::write(told[1], &stranger, sizeof stranger);
      pause();
    }
    EXPECT_EQ(::read(told[0], &pid_, sizeof pid_), static_cast<ssize_t>(sizeof pid_));
    waitpid(parent_, nullptr, WUNTRACED);
    told_ = told[0];
    close(told[1]);
  }
  ~Stranger() {
    kill(pid_, SIGKILL);
    kill(parent_, SIGKILL);
    waitpid(parent_, nullptr, 0);
    close(told_);
    close(go_[0]);
    close(go_[1]);
  }
  Stranger(const Stranger&) = delete;
  Stranger& operator=(const Stranger&) = delete;
  void exit_with(unsigned char code) const { (void)!::write(go_[1], &code, 1); }
  void kill_it() const { kill(pid_, SIGKILL); }
  /// Its parent has waited for it.
  void wait_for_reaping() const {
    kill(parent_, SIGCONT);
    pid_t reaped = 0;
    EXPECT_EQ(::read(told_, &reaped, sizeof reaped), static_cast<ssize_t>(sizeof reaped));
  }
  [[nodiscard]] WatchedProcess process() const {
    return {pid_, start_of(pid_), "", own_pid_namespace()};
  }

 private:
  pid_t parent_ = -1;
  pid_t pid_ = -1;
  int told_ = -1;
  int go_[2] = {-1, -1};
};

TEST(ProcessWatch, WhoIsKilledFromOutsideIsGoneWithoutACode) {
  const Stranger stranger;
  ProcessWatch watch;
  ASSERT_EQ(watch.watch(worker("worker_0"), stranger.process()), Watching::alive);
  stranger.kill_it();
  const auto found = deaths(watch);
  ASSERT_THAT(found, SizeIs(1));
  EXPECT_EQ(found[0].exit_code, std::nullopt);
  EXPECT_EQ(found[0].signal, std::nullopt);
}

TEST(ProcessWatch, HowAStrangerEndedIsKnownUntilItsParentHasWaitedForIt) {
  for (const int code : {0, 3}) {
    const Stranger stranger;
    ProcessWatch watch;
    ASSERT_EQ(watch.watch(worker("worker_0"), stranger.process()), Watching::alive);
    stranger.exit_with(static_cast<unsigned char>(code));
    const auto found = deaths(watch);
    ASSERT_THAT(found, SizeIs(1));
    EXPECT_EQ(found[0].exit_code, code);
    EXPECT_EQ(found[0].signal, std::nullopt);
  }
}

// Kernels before 6.15 do not tell; a wrong word is never told.
TEST(ProcessWatch, WhomItsParentHasWaitedForIsToldWithItsOwnCodeOrNone) {
  const Stranger stranger;
  ProcessWatch watch;
  ASSERT_EQ(watch.watch(worker("worker_0"), stranger.process()), Watching::alive);
  stranger.exit_with(3);
  stranger.wait_for_reaping();
  const auto found = deaths(watch);
  ASSERT_THAT(found, SizeIs(1));
  EXPECT_EQ(found[0].exit_code.value_or(3), 3);
  EXPECT_EQ(found[0].signal, std::nullopt);
}

TEST(ProcessWatch, NewerIncarnationTakesThePlaceAndTheOlderOneIsNotMissed) {
  ProcessWatch watch;
  Child first;
  const Child second;
  ASSERT_EQ(watch.watch(worker("worker_0", 1), first.process()), Watching::alive);
  ASSERT_EQ(watch.watch(worker("worker_0", 2), second.process()), Watching::alive);
  EXPECT_EQ(watch.descriptors(), 1U);
  first.kill_it();
  first.reap();
  EXPECT_THAT(watch.poll(), IsEmpty());
  EXPECT_EQ(watch.watch(worker("worker_0", 1), first.process()), Watching::dead);
  EXPECT_THAT(watch.poll(), IsEmpty());
}

TEST(ProcessWatch, RunsOfWorkersThatWereSeenAreKnownUntilTheyAreForgotten) {
  ProcessWatch watch;
  Child child;
  const core::RunUid run = worker("worker_0").run;
  EXPECT_FALSE(watch.watches(run));
  ASSERT_EQ(watch.watch(worker("worker_0"), child.process()), Watching::alive);
  child.kill_it();
  ASSERT_THAT(deaths(watch), SizeIs(1));
  EXPECT_TRUE(watch.watches(run));
  EXPECT_FALSE(watch.watches(core::run_uid_for("digits", "b")));
  watch.forget(run);
  EXPECT_FALSE(watch.watches(run));
}

TEST(ProcessWatch, OtherNamespacesAreNotJudged) {
  ProcessWatch watch;
  const Child child;
  WatchedProcess elsewhere = child.process();
  elsewhere.pid_namespace += 1;
  EXPECT_EQ(watch.watch(worker("worker_0"), elsewhere), Watching::hidden);
  // Not known whether it is ours: a number that does not fit proves nothing.
  WatchedProcess unknown = child.process();
  unknown.pid_namespace = 0;
  unknown.pid_start -= 1;
  EXPECT_EQ(watch.watch(worker("worker_1"), unknown), Watching::hidden);
  unknown.pid_start += 1;
  EXPECT_EQ(watch.watch(worker("worker_1"), unknown), Watching::alive);
  EXPECT_EQ(watch.watch(worker("worker_2"), {0, 5, "", 0}), Watching::hidden);
  EXPECT_THAT(watch.poll(), IsEmpty());
}

TEST(ProcessWatch, AnotherBootIsTheEndOfAllThatRanBefore) {
  ProcessWatch watch;
  const Child child;
  WatchedProcess before = child.process();
  before.boot_id = "1f0c93ab-0000-4000-8000-000000000000";
  EXPECT_EQ(watch.watch(worker("worker_0"), before), Watching::dead);
  EXPECT_THAT(watch.poll(), SizeIs(1));
}

TEST(ProcessWatch, DescriptorsAreBoundedAndNobodyBeyondThemIsForgotten) {
  ProcessWatch watch(2);
  std::vector<std::unique_ptr<Child>> children;
  for (int i = 0; i < 4; ++i) {
    children.push_back(std::make_unique<Child>());
    ASSERT_EQ(watch.watch(worker("worker_" + std::to_string(i)), children.back()->process()),
              Watching::alive);
  }
  EXPECT_EQ(watch.descriptors(), 2U);
  children[3]->kill_it();
  children[3]->reap();
  EXPECT_THAT(watch.poll(), SizeIs(1));
  watch.forget(worker("").run);
  EXPECT_EQ(watch.size(), 0U);
  EXPECT_EQ(watch.descriptors(), 0U);
}

}  // namespace
}  // namespace tocsin::collectors
