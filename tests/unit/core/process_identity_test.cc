// The kernel's line about one process: ugly names, zombies, texts that are cut off.
#include "core/process_identity.h"

#include <gtest/gtest.h>

#include <random>
#include <string>

namespace tocsin::core {
namespace {

// Fields 3 to 52 of a process that started at tick 321310 and was killed by SIGKILL.
std::string stat_line(const std::string& name, const std::string& state = "S") {
  return "28956 (" + name + ") " + state +
         " 417 28956 417 0 -1 4194304 104 0 0 0 250 50 7 8 20 0 17 0 321310 2998272 416 "
         "18446744073709551615 1 1 0 0 0 0 0 0 0 0 0 0 17 1 0 0 0 0 0 1 1 1 1 1 1 1 9\n";
}

TEST(ProcessIdentity, IsReadWhateverTheName) {
  for (const char* name : {"python3", "a) S 1 (b", "train ) x", "((((", "))))", "", ") R 1 1",
                           "two\nlines", "größe", "1 2 3"}) {
    const auto stat = parse_process_stat(stat_line(name));
    ASSERT_TRUE(stat) << name;
    EXPECT_EQ(stat->pid, 28956U) << name;
    EXPECT_EQ(stat->state, 'S') << name;
    EXPECT_EQ(stat->parent_pid, 417U) << name;
    EXPECT_EQ(stat->user_ticks, 250U) << name;
    EXPECT_EQ(stat->system_ticks, 50U) << name;
    EXPECT_EQ(stat->threads, 17U) << name;
    EXPECT_EQ(stat->start_ticks, 321310U) << name;
    EXPECT_EQ(stat->virtual_bytes, 2998272U) << name;
    EXPECT_EQ(stat->resident_pages, 416U) << name;
    EXPECT_EQ(stat->wait_status, 9) << name;
  }
}

TEST(ProcessIdentity, ZombieHasAStartTime) {
  const auto stat = parse_process_stat(
      "7 (python3 <defunct>) Z 1 7 7 0 -1 4227084 0 0 0 0 3 1 0 0 20 0 1 0 99 0 0 "
      "18446744073709551615 0 0 0 0 0 0 0 0 0 0 0 0 17 0 0 0 0 0 0 0 0 0 0 0 0 0 256\n");
  ASSERT_TRUE(stat);
  EXPECT_EQ(stat->state, 'Z');
  EXPECT_EQ(stat->start_ticks, 99U);
  EXPECT_EQ(stat->wait_status, 256);
}

// Part of a start time is the start time of another process.
TEST(ProcessIdentity, TextThatIsCutOffNeverGivesAnotherStartTime) {
  for (const char* name : {"python3", "a) S 1 (b", ") R 1 1"}) {
    const std::string whole = stat_line(name);
    const std::size_t last_needed = whole.find(" 416 ") + 2;  // one digit of the resident pages
    for (std::size_t size = 0; size < whole.size(); ++size) {
      const auto stat = parse_process_stat(std::string_view(whole).substr(0, size));
      EXPECT_EQ(stat.has_value(), size >= last_needed) << name << " cut at " << size;
      if (stat) {
        EXPECT_EQ(stat->start_ticks, 321310U) << name << " cut at " << size;
      }
    }
  }
}

TEST(ProcessIdentity, OlderKernelsWriteNoExitStatus) {
  const auto stat =
      parse_process_stat("5 (sh) R 1 1 1 0 -1 0 0 0 0 0 1 2 0 0 20 0 1 0 77 4096 3 0 0\n");
  ASSERT_TRUE(stat);
  EXPECT_EQ(stat->start_ticks, 77U);
  EXPECT_FALSE(stat->wait_status);
}

TEST(ProcessIdentity, AnythingElseIsNoProcess) {
  for (const char* text :
       {"", "\n", "nothing", ")", "(", ")(", "28956 (python3)", "28956 (python3) S 1 1",
        "(sh) R 1 1 1 0 -1 0 0 0 0 0 1 2 0 0 20 0 1 0 77 4096 3 0 0",     // no pid
        "5x (sh) R 1 1 1 0 -1 0 0 0 0 0 1 2 0 0 20 0 1 0 77 4096 3 0 0",  // no number
        "5 (sh) R 1 1 1 0 -1 0 0 0 0 0 1 2 0 0 20 0 1 0 -77 4096 3 0 0",
        "5 (sh) R 1 1 1 0 -1 0 0 0 0 0 1 2 0 0 20 0 1 0 7e7 4096 3 0 0",
        "5 (sh) R 1 1 1 0 -1 0 0 0 0 0 1 2 0 0 20 0 1 0 99999999999999999999 4096 3 0 0"}) {
    EXPECT_FALSE(parse_process_stat(text)) << text;
  }
}

TEST(ProcessIdentity, SurvivesAnyText) {
  std::mt19937 generator(5);
  const std::string whole = stat_line("a) S 1 (b");
  std::size_t refused = 0;
  for (int round = 0; round < 2000; ++round) {
    std::string text = whole.substr(generator() % whole.size() / 8);
    for (int change = 0; change < 5; ++change) {
      text[generator() % text.size()] = static_cast<char>(generator() % 256);
    }
    if (!parse_process_stat(text)) ++refused;
  }
  EXPECT_GT(refused, 500U);
}

}  // namespace
}  // namespace tocsin::core
