// The watched processes.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/unit/collectors/fake_tree.h"

namespace tocsin::collectors {
namespace {

using namespace std::chrono_literals;

std::string stat(int user, int system, int threads, int pages, int start = 1000) {
  return "42 (train (x)) S 1 1 1 0 -1 0 0 0 0 0 " + std::to_string(user) + " " +
         std::to_string(system) + " 0 0 20 0 " + std::to_string(threads) + " 0 " +
         std::to_string(start) + " 0 " + std::to_string(pages) + " 0 0\n";
}

TEST(ProcessCollector, SaysNothingWhileNobodyIsWatched) {
  const FakeTree tree;
  OneCollector process("process", tree.roots());
  EXPECT_TRUE(process.sweep());
  EXPECT_TRUE(process.values.empty());
}

TEST(ProcessCollector, MeasuresShareOfTheMachine) {
  const FakeTree tree;
  const double ticks = static_cast<double>(::sysconf(_SC_CLK_TCK));
  const double page = static_cast<double>(::sysconf(_SC_PAGESIZE));
  tree.write("sys/devices/system/cpu/online", "0-3\n");
  tree.write("proc/42/stat", stat(1000, 100, 17, 250));
  tree.write("proc/42/io", "read_bytes: 4096\nwrite_bytes: 0\n");
  OneCollector process("process", tree.roots());
  process->watch_process(42);
  process->watch_process(42);
  ASSERT_TRUE(process.sweep());
  EXPECT_EQ(process.values.size(), 4U);
  EXPECT_EQ(process.values["process.memory.usage{process.pid=42}"], 250 * page);
  EXPECT_EQ(process.values["process.threads{process.pid=42}"], 17);
  EXPECT_EQ(process.counters["process.disk.io{disk.io.direction=read,process.pid=42}"], 4096);
  tree.write("proc/42/stat", stat(1000 + static_cast<int>(ticks), 100, 17, 250));
  ASSERT_TRUE(process.sweep(2s));
  EXPECT_EQ(process.values.size(), 6U);
  // One processor second in two seconds of four processors.
  EXPECT_DOUBLE_EQ(process.values["process.cpu.utilization{cpu.mode=user,process.pid=42}"], 0.125);
  EXPECT_EQ(process.values["process.cpu.utilization{cpu.mode=system,process.pid=42}"], 0);
}

TEST(ProcessCollector, LeavesOutTheDiskWhereItMayNotLook) {
  const FakeTree tree;
  tree.write("proc/42/stat", stat(1, 1, 1, 1));
  OneCollector process("process", tree.roots());
  process->watch_process(42);
  ASSERT_TRUE(process.sweep());
  EXPECT_EQ(process.values.size(), 2U);
}

TEST(ProcessCollector, ANumberThatChangedHandsStartsAnew) {
  const FakeTree tree;
  tree.write("proc/42/stat", stat(1000, 0, 1, 1));
  OneCollector process("process", tree.roots());
  process->watch_process(42);
  ASSERT_TRUE(process.sweep());
  tree.write("proc/42/stat", stat(5000, 0, 1, 1, 2000));
  ASSERT_TRUE(process.sweep());
  EXPECT_EQ(process.values.count("process.cpu.utilization{cpu.mode=user,process.pid=42}"), 0U);
}

TEST(ProcessCollector, ForgetsOneAndKeepsTheOthers) {
  const FakeTree tree;
  tree.write("proc/42/stat", stat(1, 1, 1, 1));
  tree.write("proc/43/stat", stat(1, 1, 1, 1));
  OneCollector process("process", tree.roots());
  process->watch_process(42);
  process->watch_process(43);
  process->watch_process(44);  // is not there
  process->watch_process(-1);
  ASSERT_TRUE(process.sweep());
  EXPECT_EQ(process.values.size(), 4U);
  process->forget_process(42);
  process->forget_process(99);
  ASSERT_TRUE(process.sweep());
  EXPECT_EQ(process.values.count("process.threads{process.pid=43}"), 1U);
  EXPECT_EQ(process.values.count("process.threads{process.pid=42}"), 0U);
}

// On the real /proc: our own process, and a child that ends.
TEST(ProcessCollector, SeesARealProcessEnd) {
  int pipe_ends[2];
  ASSERT_EQ(::pipe(pipe_ends), 0);
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    char byte = 0;
    ::close(pipe_ends[1]);
    const ssize_t ignored = ::read(pipe_ends[0], &byte, 1);  // until the parent closes its end
    ::_exit(ignored == 0 ? 0 : 1);
  }
  OneCollector process("process", Roots{});
  process->watch_process(child);
  process->watch_process(::getpid());
  EXPECT_TRUE(process.sweep());
  const std::string threads = "process.threads{process.pid=";
  EXPECT_EQ(process.values[threads + std::to_string(child) + "}"], 1);
  EXPECT_GT(process.values["process.memory.usage{process.pid=" + std::to_string(::getpid()) + "}"],
            0);
  ::close(pipe_ends[0]);
  ::close(pipe_ends[1]);
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(process.sweep());
  EXPECT_EQ(process.values.count(threads + std::to_string(child) + "}"), 0U);
  EXPECT_EQ(process.values.count(threads + std::to_string(::getpid()) + "}"), 1U);
}

}  // namespace
}  // namespace tocsin::collectors
