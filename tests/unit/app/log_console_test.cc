// The log as a person at a terminal reads it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <ctime>

#include "app/log/log_console.h"

namespace tocsin::app {
namespace {

using core::Level;
using ::testing::HasSubstr;
using ::testing::Not;

class LogConsole : public ::testing::Test {
 protected:
  LogConsole() {
    setenv("TZ", "UTC", 1);
    tzset();
  }
  static std::string line(Level level, const char* event, const core::ValueMap& fields,
                          bool colour = false) {
    return console_line(level, event, fields, core::wall_time(1767323045678000000), colour);
  }
};

TEST_F(LogConsole, TellsAnIssueWithItsAdvice) {
  EXPECT_EQ(
      line(Level::info, "issue_fired",
           {{"rule", "exploding_tensor"},
            {"severity", "error"},
            {"job", "digits"},
            {"summary", "loss became NaN."},
            {"advice", "Lower the learning rate."},
            {"event_id", "iss_1"}}),
      "03:04:05 ISSUE digits: exploding_tensor (error): loss became NaN. → Lower the learning "
      "rate.");
}

TEST_F(LogConsole, LeavesOutWhatIsEmpty) {
  EXPECT_EQ(line(Level::info, "job_ended",
                 {{"job", "digits"}, {"outcome", "completed"}, {"exit_code", core::Value()}}),
            "03:04:05 JOB   digits ended: completed");
  EXPECT_EQ(line(Level::info, "job_ended",
                 {{"job", "digits"}, {"outcome", "failed"}, {"exit_code", 1}, {"step", 7}}),
            "03:04:05 JOB   digits ended: failed, exit code 1 at step 7");
}

TEST_F(LogConsole, ShowsAnEventWithoutASentenceByItsFields) {
  EXPECT_EQ(line(Level::warn, "lease_not_renewed", {{"error", "down"}, {"none", ""}, {"ms", 1.5}}),
            "03:04:05 WARN  lease not renewed  error=down  ms=1.5");
}

TEST_F(LogConsole, SaysHowManyWereLeftOut) {
  EXPECT_THAT(line(Level::error, "start_failed", {{"error", "x"}, {"suppressed", 3}}),
              HasSubstr("could not start: x (3 more like this were left out)"));
}

TEST_F(LogConsole, ColoursAnIssueByItsSeverity) {
  const core::ValueMap severe{{"severity", "critical"}};
  const core::ValueMap mild{{"severity", "warning"}};
  EXPECT_THAT(line(Level::info, "issue_fired", severe, true), HasSubstr("\033[31mISSUE\033[0m"));
  EXPECT_THAT(line(Level::info, "issue_fired", mild, true), HasSubstr("\033[33mISSUE\033[0m"));
  EXPECT_THAT(line(Level::info, "issue_fired", severe, false), Not(HasSubstr("\033")));
}

TEST_F(LogConsole, LetsNothingFromOutsideMoveTheCursor) {
  const std::string hostile =
      "a\033[2J\r\n\x07\xC2\x9B"
      "31mb";
  const std::string text = line(Level::info, "issue_fired", {{"summary", hostile}, {"job", "é"}});
  EXPECT_THAT(text, HasSubstr("a [2J    31mb"));
  EXPECT_THAT(text, HasSubstr("é: "));
}

TEST_F(LogConsole, RespectsNoColor) {
  setenv("NO_COLOR", "1", 1);
  EXPECT_FALSE(shows_colour(1));
  unsetenv("NO_COLOR");
}

}  // namespace
}  // namespace tocsin::app
