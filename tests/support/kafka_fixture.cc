#include "tests/support/kafka_fixture.h"

#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string_view>

namespace tocsin::tests {
namespace {

struct Output {
  int status = -1;
  std::string text;
};

Output run(const std::string& command) {
  Output output;
  // "env -u": a cluster of our own even when the environment names one from outside.
  const std::string line =
      "cd '" TOCSIN_SOURCE_DIR "' && env -u KAFKA_BOOTSTRAP_SERVERS " + command + " 2>&1";
  FILE* pipe = ::popen(line.c_str(), "r");
  if (pipe == nullptr) return output;
  std::array<char, 512> chunk{};
  while (const std::size_t got = std::fread(chunk.data(), 1, chunk.size(), pipe)) {
    output.text.append(chunk.data(), got);
  }
  output.status = ::pclose(pipe);
  return output;
}

}  // namespace

core::Result<std::unique_ptr<KafkaCluster>> KafkaCluster::start(const std::string& name,
                                                                int nodes) {
  const std::string full = unique_name(name);
  const Output output = run("tools/kafka start --name " + full + " --nodes " +
                            std::to_string(nodes) + " --until-pid " + std::to_string(::getpid()));
  constexpr std::string_view kMark = "KAFKA_BOOTSTRAP_SERVERS=";
  const auto at = output.text.rfind(kMark);
  if (output.status != 0 || at == std::string::npos) {
    return core::unavailable("tools/kafka start failed: " + output.text);
  }
  std::string servers = output.text.substr(at + kMark.size());
  servers = servers.substr(0, servers.find_first_of(" \n"));
  return std::unique_ptr<KafkaCluster>(new KafkaCluster(full, std::move(servers)));
}

KafkaCluster::~KafkaCluster() {
  [[maybe_unused]] const auto stopped = tool("stop");  // it ends with the process anyway
}

core::Status KafkaCluster::tool(const std::string& command) {
  const Output output = run("tools/kafka " + command + " --name " + name_);
  if (output.status == 0) return core::ok();
  return core::unavailable("tools/kafka " + command + " failed: " + output.text);
}

core::Status KafkaCluster::pause() { return tool("pause"); }
core::Status KafkaCluster::resume() { return tool("resume"); }
core::Status KafkaCluster::kill() { return tool("kill"); }
core::Status KafkaCluster::restart() { return tool("restart"); }

core::Result<std::string> kafka_bootstrap_servers() {
  if (const char* outside = std::getenv("KAFKA_BOOTSTRAP_SERVERS")) return std::string(outside);
  static const auto cluster = KafkaCluster::start("shared");
  if (!cluster) return cluster.error();
  return (*cluster)->servers();
}

std::string unique_name(const std::string& what) {
  static std::atomic<int> count{0};
  const auto now = std::chrono::system_clock::now().time_since_epoch().count();
  return what + "-" + std::to_string(::getpid()) + "-" + std::to_string(now % 1'000'000'000) + "-" +
         std::to_string(++count);
}

}  // namespace tocsin::tests
