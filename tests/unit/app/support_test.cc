// The small things app gives to everybody: log lines, instruments, systemd's readiness.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "app/log/logging.h"
#include "app/process/instance_slot.h"
#include "app/process/sd_notify.h"
#include "app/serve/metrics.h"

namespace tocsin::app {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

class StillClock final : public core::Clock {
 public:
  [[nodiscard]] core::WallTime now() const override { return core::wall_time(1767323045678000000); }
  [[nodiscard]] core::Duration monotonic() const override { return time; }
  core::Duration time{1};
};

std::string written(const LogConfig& config, const StillClock& clock,
                    const std::function<void(core::Log&)>& act) {
  ::testing::internal::CaptureStderr();
  act(*make_log(config, clock));
  return ::testing::internal::GetCapturedStderr();
}

TEST(Logging, WritesOneJsonObjectPerEvent) {
  const StillClock clock;
  const auto text = written({"info", "json"}, clock, [](core::Log& log) {
    log.info("issue_fired", {{"rule", "overfit"},
                             {"step", std::int64_t{7}},
                             {"value", std::nan("")},
                             {"text", "a \"b\"\n"}});
  });
  const auto line = nlohmann::json::parse(text);
  EXPECT_EQ(line["msg"], "issue_fired");
  EXPECT_EQ(line["level"], "info");
  EXPECT_EQ(line["ts"], "2026-01-02T03:04:05.678Z");
  EXPECT_EQ(line["step"], 7);
  EXPECT_EQ(line["value"], "NaN");
  EXPECT_EQ(line["text"], "a \"b\"\n");
}

TEST(Logging, QuotesOnlyWhatLogfmtNeeds) {
  const StillClock clock;
  const auto text = written({"info", "logfmt"}, clock, [](core::Log& log) {
    log.info("x", {{"a", "b"}, {"c", "d e"}});
  });
  EXPECT_THAT(text, HasSubstr("level=info msg=x a=b c=\"d e\"\n"));
}

TEST(Logging, LeavesOutWhatIsBelowTheLevel) {
  const StillClock clock;
  EXPECT_EQ(written({"warn", "json"}, clock, [](core::Log& log) { log.info("x"); }), "");
}

TEST(Logging, CountsRepeatedWarningsInsteadOfFloodingTheLog) {
  StillClock clock;
  const auto text = written({"info", "logfmt"}, clock, [&](core::Log& log) {
    for (int i = 0; i < 100; ++i) log.warn("commit_failed");
    clock.time += std::chrono::seconds(11);
    log.warn("commit_failed");
  });
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 11);
  EXPECT_THAT(text, HasSubstr("suppressed=90"));
}

TEST(Metrics, GiveTheSameInstrumentForTheSameNameAndLabels) {
  PrometheusTelemetry telemetry;
  telemetry.counter("tocsin_x_total", "x", {{"reason", "a"}}).add(2);
  telemetry.counter("tocsin_x_total", "x", {{"reason", "a"}}).add(3);
  telemetry.counter("tocsin_x_total", "x", {{"reason", "b"}});
  telemetry.gauge("tocsin_y", "y", {}).set(1.5);
  const auto text = telemetry.render();
  EXPECT_THAT(text, HasSubstr("tocsin_x_total{reason=\"a\"} 5"));
  EXPECT_THAT(text, HasSubstr("tocsin_x_total{reason=\"b\"} 0"));
  EXPECT_THAT(text, HasSubstr("tocsin_y 1.5"));
}

TEST(InstanceSlot, GivesTheLowestFreeNumberAndTakesItBack) {
  const std::string name = "test-" + std::to_string(::getpid());
  auto first = InstanceSlot::acquire(name);
  auto second = InstanceSlot::acquire(name);
  ASSERT_TRUE(first && second);
  EXPECT_EQ(first->number(), 0);
  EXPECT_EQ(second->number(), 1);
  { const InstanceSlot gone = std::move(*first); }
  EXPECT_EQ(InstanceSlot::acquire(name)->number(), 0);
  EXPECT_EQ(InstanceSlot::acquire(name + "-other")->number(), 0);
}

TEST(SdNotify, SendsOneDatagramToTheSocket) {
  const auto path =
      std::filesystem::temp_directory_path() / ("tocsin-notify-" + std::to_string(::getpid()));
  const int fd = ::socket(AF_UNIX, SOCK_DGRAM, 0);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::strncpy(address.sun_path, path.c_str(), sizeof address.sun_path - 1);
  ASSERT_EQ(::bind(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
  EXPECT_TRUE(sd_notify(path.string(), "READY=1"));
  char buffer[64] = {};
  EXPECT_EQ(::recv(fd, buffer, sizeof buffer, 0), 7);
  EXPECT_STREQ(buffer, "READY=1");
  ::close(fd);
  std::filesystem::remove(path);
}

TEST(SdNotify, DoesNothingOutsideSystemd) { EXPECT_TRUE(sd_notify("", "READY=1")); }

TEST(SdNotify, SaysWhenNobodyListens) { EXPECT_FALSE(sd_notify("/nonexistent/socket", "READY=1")); }

}  // namespace
}  // namespace tocsin::app
