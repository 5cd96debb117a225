// The C interface as a C program would use it, against the shared library.
#include "collectors/hook/tocsin_client.h"

#include <gtest/gtest.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <string>
#include <vector>

#include "tests/support/sanitizers.h"

namespace {

class AbiTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = ::testing::TempDir() + "tocsin_abi_XXXXXX";
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    directory_ = pattern;
    unsetenv("TOCSIN_DISABLED");
    options_.size = sizeof options_;
    options_.out = directory_.c_str();
    options_.run = "abi";
    options_.rank = options_.world_size = -1;
  }
  void TearDown() override { std::filesystem::remove_all(directory_); }

  std::string directory_;
  tocsin_options options_{};
};

TEST_F(AbiTest, OneClientPerProcess) {
  tocsin_client* first = nullptr;
  tocsin_client* second = nullptr;
  ASSERT_EQ(tocsin_open(&options_, &first), TOCSIN_OK) << tocsin_last_error();
  EXPECT_EQ(tocsin_open(&options_, &second), TOCSIN_OK);
  EXPECT_EQ(first, second);
  EXPECT_EQ(tocsin_step_end(first, 0), TOCSIN_OK);
  EXPECT_EQ(tocsin_flush(first, 5000), TOCSIN_OK);
  EXPECT_EQ(tocsin_close(first, "completed", 5000), TOCSIN_OK);
}

// What a thread's objects held is gone when handlers of exit() run, and the client closes in one.
TEST(AbiErrors, AreThereInHandlersOfExit) {
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    on_exit(
        [](int, void*) {
          const bool kept = std::strstr(tocsin_last_error(), "options with their size") != nullptr;
          const bool writes = tocsin_reduce(nullptr, nullptr, 0) == TOCSIN_INVALID &&
                              std::strstr(tocsin_last_error(), "13 places") != nullptr;
          _exit(kept && writes ? 0 : 1);
        },
        nullptr);
    (void)tocsin_open(nullptr, nullptr);
    std::exit(3);  // NOLINT(concurrency-mt-unsafe)
  }
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

TEST_F(AbiTest, LongErrorsAreCut) {
  tocsin_client* client = nullptr;
  const std::string capture = "{collections: {a: {include: ['(" + std::string(2100, 'x') + "']}}}";
  options_.capture = capture.c_str();
  ASSERT_LT(tocsin_open(&options_, &client), 0);
  EXPECT_EQ(std::strlen(tocsin_last_error()), 2047U);
}

TEST_F(AbiTest, NullClientIsADisabledOne) {
  std::uint64_t id = 0;
  EXPECT_EQ(tocsin_name(nullptr, TOCSIN_NAME_SCALAR, "a", 1, nullptr, &id), TOCSIN_DISABLED);
  EXPECT_EQ(tocsin_step_end(nullptr, 0), TOCSIN_DISABLED);
  EXPECT_EQ(tocsin_stop_requested(nullptr), 0);
  EXPECT_EQ(tocsin_close(nullptr, "completed", 1), TOCSIN_DISABLED);
}

TEST_F(AbiTest, KillSwitchOpensNothing) {
  setenv("TOCSIN_DISABLED", "1", 1);
  tocsin_client* client = nullptr;
  EXPECT_EQ(tocsin_open(&options_, &client), TOCSIN_DISABLED);
  EXPECT_EQ(client, nullptr);
  EXPECT_TRUE(std::filesystem::is_empty(directory_));
}

TEST_F(AbiTest, WrongArgumentsAreErrorsWithWords) {
  tocsin_client* client = nullptr;
  EXPECT_EQ(tocsin_open(nullptr, &client), TOCSIN_INVALID);
  options_.capture = "{evry: 3}";
  EXPECT_EQ(tocsin_open(&options_, &client), TOCSIN_INVALID);
  EXPECT_NE(std::string(tocsin_last_error()).find("every"), std::string::npos);
  options_.capture = nullptr;
  ASSERT_EQ(tocsin_open(&options_, &client), TOCSIN_OK);
  std::uint64_t id = 0;
  EXPECT_EQ(tocsin_name(client, 99, "a", 1, nullptr, &id), TOCSIN_INVALID);
  EXPECT_EQ(tocsin_set_mode(client, 9), TOCSIN_INVALID);
  tocsin_tensor tensor{};
  EXPECT_EQ(tocsin_tensors(client, &tensor, 1), TOCSIN_INVALID);
  EXPECT_EQ(tocsin_ack(client, "{}", 2), TOCSIN_INVALID);
  EXPECT_STREQ(tocsin_last_error(), "tocsin_ack: command_id is missing");
  const std::string wrong = R"({"command_id":"c","phase":"stopped","checkpoint":{"bytes":"x"}})";
  EXPECT_EQ(tocsin_ack(client, wrong.c_str(), wrong.size()), TOCSIN_INVALID);
  EXPECT_STREQ(
      tocsin_last_error(),
      "tocsin_ack: checkpoint.bytes: expected a whole number from 0 to 9223372036854775807");
  EXPECT_EQ(tocsin_lifecycle(client, "[", 1), TOCSIN_INVALID);
  EXPECT_EQ(tocsin_lifecycle(client, R"({"event":"died"})", 16), TOCSIN_INVALID);
  char small[4];
  size_t length = 0;
  EXPECT_EQ(tocsin_counters(client, small, sizeof small, &length), TOCSIN_TOO_SMALL);
  std::vector<char> enough(length + 257);  // counters grow meanwhile, by a digit here and there
  EXPECT_EQ(tocsin_counters(client, enough.data(), enough.size(), &length), TOCSIN_OK);
  EXPECT_EQ(tocsin_command(client, "stop", small, sizeof small, &length), TOCSIN_NOT_FOUND);
  EXPECT_EQ(tocsin_close(client, "completed", 5000), TOCSIN_OK);
}

TEST_F(AbiTest, OlderCallersWithShorterStructsAreServed) {
  tocsin_client* client = nullptr;
  options_.size = offsetof(tocsin_options, queue_bytes);
  options_.queue_bytes = 1;  // beyond the size: must not be read
  ASSERT_EQ(tocsin_open(&options_, &client), TOCSIN_OK);
  EXPECT_EQ(tocsin_step_end(client, 0), TOCSIN_OK);
  EXPECT_EQ(tocsin_close(client, "completed", 5000), TOCSIN_OK);
}

TEST_F(AbiTest, ChildOfAForkIsDisabledAndMayOpenItsOwn) {
  if (!tocsin::tests::kForksSafely) GTEST_SKIP() << "no sanitizer can";
  tocsin_client* client = nullptr;
  ASSERT_EQ(tocsin_open(&options_, &client), TOCSIN_OK);
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    int wrong = 0;
    wrong += tocsin_step_end(client, 0) != TOCSIN_DISABLED;
    wrong += tocsin_flush(client, 10000) != TOCSIN_DISABLED;
    wrong += tocsin_close(client, "completed", 10000) != TOCSIN_DISABLED;
    wrong += tocsin_after_fork(client) != TOCSIN_OK;
    tocsin_client* own = nullptr;
    options_.run = "child";
    wrong += tocsin_open(&options_, &own) != TOCSIN_OK || own == client;
    wrong += tocsin_step_end(own, 0) != TOCSIN_OK;
    wrong += tocsin_close(own, "completed", 5000) != TOCSIN_OK;
    _exit(wrong);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 0);
  EXPECT_EQ(tocsin_step_end(client, 0), TOCSIN_OK);
  EXPECT_EQ(tocsin_close(client, "completed", 5000), TOCSIN_OK);
}

// A raw clone runs no fork handlers. Nothing here may allocate: another thread of the parent may
// have held the allocator's lock.
TEST_F(AbiTest, ChildThatWasMadeWithoutForkIsDisabledOnceItSaysSo) {
  if (!tocsin::tests::kKnowsRawClones) GTEST_SKIP() << "ThreadSanitizer cannot";
  tocsin_client* client = nullptr;
  ASSERT_EQ(tocsin_open(&options_, &client), TOCSIN_OK);
  EXPECT_EQ(tocsin_after_fork(client), TOCSIN_OK);  // in the parent it does nothing
  EXPECT_EQ(tocsin_step_end(client, 0), TOCSIN_OK);
  const auto child = static_cast<pid_t>(syscall(SYS_clone, SIGCHLD, nullptr, nullptr, nullptr, 0));
  ASSERT_GE(child, 0);
  if (child == 0) {
    const bool right =
        tocsin_after_fork(client) == TOCSIN_OK && tocsin_step_end(client, 0) == TOCSIN_DISABLED;
    _exit(right ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 0);
  EXPECT_EQ(tocsin_close(client, "completed", 5000), TOCSIN_OK);
}

TEST_F(AbiTest, ReduceGivesTheColumnsAfterTheName) {
  const float values[] = {1, -2, 0, 3};
  const std::int64_t shape[] = {4};
  tocsin_tensor tensor{};
  tensor.size = sizeof tensor;
  tensor.data = values;
  tensor.shape = shape;
  tensor.ndim = 1;
  tensor.dtype = 1;
  double out[13];
  ASSERT_EQ(tocsin_reduce(&tensor, out, 0), TOCSIN_OK);
  const double expected[12] = {4, 2, 14, 13, 6, -2, 3, 0, 0, 0, 1, 1};
  for (int i = 0; i < 12; ++i) EXPECT_EQ(out[i], expected[i]) << i;
  EXPECT_EQ(tocsin_reduce(&tensor, out, 7), TOCSIN_INVALID);
}

TEST_F(AbiTest, ACopyThatCannotBeMadeSaysWhy) {
  const auto refusal = [](const std::string& options) {
    tocsin_copy* copy = nullptr;
    EXPECT_EQ(tocsin_copy_open(options.c_str(), options.size(), &copy), TOCSIN_INVALID) << options;
    EXPECT_EQ(copy, nullptr);
    return std::string(tocsin_last_error());
  };
  const auto says = [&](const std::string& options, const char* what) {
    return refusal(options).find(what) != std::string::npos;
  };
  EXPECT_TRUE(says("[1]", "options are an object"));
  EXPECT_TRUE(says(R"({"out": "kafka://127.0.0.1:1"})", "a directory for the copy"));
  EXPECT_TRUE(says(R"({"out": "/nowhere", "directory": "/nowhere"})", "expected kafka://host:"));
  std::uint64_t records = 7;
  EXPECT_EQ(tocsin_copy_next(nullptr, 0, &records), TOCSIN_INVALID);
  EXPECT_EQ(tocsin_copy_open(nullptr, 0, nullptr), TOCSIN_INVALID);
  EXPECT_STREQ(tocsin_copy_run(nullptr), "");
  EXPECT_EQ(tocsin_copy_close(nullptr), TOCSIN_OK);
}

TEST_F(AbiTest, VersionIsTheHeadersOne) { EXPECT_EQ(tocsin_abi_version(), TOCSIN_ABI_VERSION); }

}  // namespace
