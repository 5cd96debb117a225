// What /metrics says of the process itself.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "app/process/version.h"
#include "app/serve/process_metrics.h"
#include "config/config.h"
#include "core/value.h"

namespace tocsin::app {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

TEST(ProcessMetrics, SayTheVersion) {
  EXPECT_THAT(process_metrics(),
              HasSubstr("\ntocsin_build_info{version=\"" + build_version() + "\",compiler=\""));
}

TEST(ProcessMetrics, HaveTheStandardNamesWithTheirTypes) {
  const std::string text = process_metrics();
  for (const char* line :
       {"# TYPE process_cpu_seconds_total counter", "# TYPE process_open_fds gauge",
        "# TYPE process_max_fds gauge", "# TYPE process_virtual_memory_bytes gauge",
        "# TYPE process_resident_memory_bytes gauge", "# TYPE process_start_time_seconds gauge"}) {
    EXPECT_THAT(text, HasSubstr(line));
  }
}

TEST(ProcessMetrics, AreReadFromTheirPlaces) {
  const std::filesystem::path proc =
      std::filesystem::path(testing::TempDir()) / ("proc" + std::to_string(getpid()));
  std::filesystem::create_directories(proc / "self" / "fd");
  std::ofstream(proc / "stat") << "cpu 1 2\nbtime 1000\n";
  std::ofstream(proc / "self" / "stat")
      << "7 (a name) (x) S 1 2 3 4 5 6 7 8 9 10 150 50 0 0 20 0 9 0 400 4096 3 18446744\n";
  std::ofstream(proc / "self" / "limits") << "Max open files            1024    4096    files\n";
  for (const char* file : {"0", "1", "2"}) std::ofstream(proc / "self" / "fd" / file);
  const std::string text = process_metrics(proc.string());
  const double ticks = static_cast<double>(sysconf(_SC_CLK_TCK));
  EXPECT_THAT(text, HasSubstr("\nprocess_cpu_seconds_total " +
                              core::to_json(core::Value(200.0 / ticks)) + "\n"));
  EXPECT_THAT(text, HasSubstr("\nprocess_start_time_seconds " +
                              core::to_json(core::Value(1000 + 400.0 / ticks)) + "\n"));
  EXPECT_THAT(text, HasSubstr("\nprocess_virtual_memory_bytes 4096\n"));
  EXPECT_THAT(text, HasSubstr("\nprocess_max_fds 1024\n"));
  EXPECT_THAT(text, HasSubstr("\nprocess_open_fds 2\n"));
  EXPECT_THAT(text, HasSubstr("\nprocess_threads 9\n"));
  std::filesystem::remove_all(proc);
}

TEST(ProcessMetrics, LeaveOutWhatCannotBeRead) {
  const std::string text = process_metrics("/nowhere");
  EXPECT_THAT(text, HasSubstr("tocsin_build_info{"));
  EXPECT_THAT(text, Not(HasSubstr("process_")));
}

TEST(ProcessMetrics, CountFilesOfCredentialsThatChange) {
  const auto reloads = [] {
    const std::string text = process_metrics();
    const std::string name = "\ntocsin_router_secret_reloads_total ";
    const std::size_t at = text.find(name);
    EXPECT_NE(at, std::string::npos);
    return at == std::string::npos ? -1 : std::stoi(text.substr(at + name.size()));
  };
  const std::string path = testing::TempDir() + "/secret" + std::to_string(getpid());
  const config::Secret secret = config::Secret::from_file(path);
  const int before = reloads();
  const auto holds = [&](const char* value) {
    std::ofstream(path) << value << "\n";
    EXPECT_EQ(*secret.reveal(), value);
  };
  holds("first");
  holds("first");
  EXPECT_EQ(reloads(), before) << "the first reading and the same again are no change";
  holds("second");
  EXPECT_EQ(reloads(), before + 1);
  holds("first");
  EXPECT_EQ(reloads(), before + 2);
  std::ofstream(path) << "";
  EXPECT_FALSE(secret.reveal());
  EXPECT_EQ(reloads(), before + 2) << "an empty file is an error, not a credential";
}

}  // namespace
}  // namespace tocsin::app
