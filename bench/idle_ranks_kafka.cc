// What an idle run of many ranks asks of a real Kafka and of its nodes, and how fast a stop reaches
// all of it. usage: idle_ranks_kafka [bootstrap] [ranks] [ranks per node]
// (default $KAFKA_BOOTSTRAP_SERVERS, 1000, 8)
//
// All ranks of all nodes are in this process, each with the command reader and the thread that it
// has in a training process; nodes are names of local sockets. Requests are counted as data
// segments that the kernel sent on this process's connections to the broker.
#include <dirent.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <iostream>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "collectors/hook/commands/command_reader.h"
#include "core/log.h"
#include "core/telemetry.h"
#include "ingest/ingest.h"

namespace {

using namespace tocsin;
using namespace std::chrono_literals;
using hook::CommandReader;
using Steady = std::chrono::steady_clock;

constexpr auto kIdle = 20s;

double cpu_seconds() {
  rusage use{};
  getrusage(RUSAGE_SELF, &use);
  return static_cast<double>(use.ru_utime.tv_sec + use.ru_stime.tv_sec) +
         static_cast<double>(use.ru_utime.tv_usec + use.ru_stime.tv_usec) * 1e-6;
}

// Over all TCP connections of this process; they stay open while we measure.
std::uint64_t segments_sent() {
  std::uint64_t out = 0;
  DIR* folder = opendir("/proc/self/fd");
  while (const dirent* entry = folder == nullptr ? nullptr : readdir(folder)) {
    const int descriptor = std::atoi(entry->d_name);
    tcp_info info{};
    socklen_t size = sizeof info;
    if (getsockopt(descriptor, IPPROTO_TCP, TCP_INFO, &info, &size) == 0) {
      out += info.tcpi_data_segs_out;
    }
  }
  if (folder != nullptr) closedir(folder);
  return out;
}

struct Rank {
  std::unique_ptr<CommandReader> reader;
  std::thread thread;
};

}  // namespace

int main(int argc, char** argv) {
  const char* given = argc > 1 ? argv[1] : std::getenv("KAFKA_BOOTSTRAP_SERVERS");
  if (given == nullptr) {
    std::cerr << "idle_ranks_kafka: no broker\n";
    return 2;
  }
  const std::size_t ranks = argc > 2 ? std::strtoul(argv[2], nullptr, 10) : 1000;
  const std::size_t per_node = argc > 3 ? std::strtoul(argv[3], nullptr, 10) : 8;
  ingest::TransportConfig config;
  config.kafka = core::ValueMap{{"bootstrap.servers", std::string(given)}};
  ingest::TopicsConfig topics;
  topics.prefix = "idle-" + std::to_string(getpid());
  core::NullLog log;
  core::NullTelemetry telemetry;
  auto transport = ingest::Transport::open(config, topics, log, telemetry);
  if (!transport || !(*transport)->ensure_topics()) {
    std::cerr << "idle_ranks_kafka: no topics at " << given << "\n";
    return 2;
  }
  const core::RunUid run = core::run_uid_v4();
  ingest::SourceOptions options;
  options.topics = {"commands"};
  options.start = ingest::Start::beginning;
  options.fetch_wait = 1s;
  options.partition = core::partition_for(core::to_text(run), topics.partitions);

  std::mutex mutex;
  std::vector<double> reached_ms;
  Steady::time_point written{};
  std::atomic<bool> stop{false};
  std::vector<Rank> all(ranks);
  for (std::size_t i = 0; i < ranks; ++i) {
    all[i].reader = std::make_unique<CommandReader>(
        topics.prefix + "/node-" + std::to_string(i / per_node), core::to_text(run) + "/",
        [&] { return (*transport)->source(options); },
        [&](const core::RecordView&) {
          const auto now = Steady::now();
          const std::lock_guard lock(mutex);
          reached_ms.push_back(std::chrono::duration<double, std::milli>(now - written).count());
        });
    all[i].thread = std::thread([&stop, reader = all[i].reader.get()] {
      while (!stop) (void)reader->turn(5s);
    });
  }
  const auto in_role = [&](CommandReader::Role role) {
    return std::count_if(all.begin(), all.end(),
                         [&](const Rank& rank) { return rank.reader->role() == role; });
  };
  while (in_role(CommandReader::Role::none) > 0) std::this_thread::sleep_for(100ms);
  std::this_thread::sleep_for(10s);  // connections, metadata

  const double cpu = cpu_seconds();
  const std::uint64_t segments = segments_sent();
  const auto begin = Steady::now();
  std::this_thread::sleep_for(kIdle);
  const double seconds = std::chrono::duration<double>(Steady::now() - begin).count();
  const double requests = static_cast<double>(segments_sent() - segments) / seconds;
  const double share = (cpu_seconds() - cpu) / seconds;

  // Connected and known to the broker before the clock starts.
  auto publisher = (*transport)->publisher({});
  if (!publisher || !(*publisher)->publish(ingest::withdraw_command(run, "capture")) ||
      !(*publisher)->flush(10s)) {
    return 2;
  }
  std::this_thread::sleep_for(1s);
  core::Command command;
  command.command_id = "cmd_bench";
  command.action = "stop";
  command.run = run;
  {
    const std::lock_guard lock(mutex);
    reached_ms.clear();
    written = Steady::now();
  }
  if (!(*publisher)->publish(ingest::encode_command(command, "/bench"))) return 2;
  (void)(*publisher)->flush(10s);
  const auto until = Steady::now() + 20s;
  std::size_t reached = 0;
  while (reached < ranks && Steady::now() < until) {
    std::this_thread::sleep_for(10ms);
    const std::lock_guard lock(mutex);
    reached = reached_ms.size();
  }
  {
    const std::lock_guard lock(mutex);
    std::sort(reached_ms.begin(), reached_ms.end());
  }
  std::cout << ranks << " idle ranks, " << per_node
            << " per node: " << in_role(CommandReader::Role::leader) << " readers, "
            << in_role(CommandReader::Role::follower) << " followers\n"
            << "  requests to the broker: " << requests << "/s ("
            << requests / static_cast<double>(in_role(CommandReader::Role::leader))
            << "/s per reader)\n"
            << "  CPU: " << share * 100 << " % of a core for all, "
            << share * 1e6 / static_cast<double>(ranks) << " us/s per rank\n"
            << "  a stop reached " << reached << " of " << ranks << ": p50 "
            << (reached > 0 ? reached_ms[reached / 2] : 0) << " ms, last "
            << (reached > 0 ? reached_ms[reached - 1] : 0) << " ms\n";
  stop = true;
  for (Rank& rank : all) rank.reader->wake();
  for (Rank& rank : all) {
    rank.thread.join();
    rank.reader->close();
  }
  // Target: one request per node and second, no more; nobody missed.
  const bool met =
      reached == ranks && requests <= 2.0 * static_cast<double>((ranks + per_node - 1) / per_node);
  return met ? 0 : 1;
}
