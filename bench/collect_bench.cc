// What one sweep over the system collectors costs on this machine.
//
// usage: collect_bench [sweeps]
// One line per figure: name value unit ratio baseline target pass|miss. The share of one processor
// at an interval of 100 ms is judged: at most 2 % (docs/collectors/README.md). Times are this
// thread's processor time, system calls included.
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "collectors/collectors.h"

namespace tocsin::bench {
namespace {

using namespace std::chrono_literals;

double microseconds() {
  timespec time{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return 1e6 * static_cast<double>(time.tv_sec) + 1e-3 * static_cast<double>(time.tv_nsec);
}

// Mean processor time of a sweep, and how many samples it had; negative if the collector fails
// here.
double sweep_cost(const std::vector<std::string>& names, int sweeps, std::size_t& samples) {
  collectors::Config config;
  config.collectors = names;
  auto opened = collectors::NodeCollector::open(config, {});
  if (!opened) return -1;
  collectors::NodeCollector& node = **opened;
  node.watch_process(::getpid());
  core::Duration now = 0s;
  const auto sweep = [&] {
    now += config.interval;
    node.tick(core::WallTime{now}, now,
              [&](const collectors::Sweep& s) { samples = s.samples().size(); });
  };
  for (int i = 0; i < 10; ++i) sweep();  // opens the files, makes the series
  const double start = microseconds();
  for (int i = 0; i < sweeps; ++i) sweep();
  const double mean = (microseconds() - start) / sweeps;
  return node.counters().errors == 0 ? mean : -1;
}

int run(int sweeps) {
  std::size_t samples = 0;
  std::vector<std::string> all;
  for (const collectors::CollectorDescriptor& each : collectors::builtin_collectors()) {
    const double cost = sweep_cost({std::string(each.name)}, sweeps, samples);
    const std::string name = "collect_" + std::string(each.name);
    if (cost < 0) {
      std::printf("%-34s %8s us   ratio - baseline - target - absent\n", name.c_str(), "-");
      continue;
    }
    std::printf("%-34s %8.2f us   ratio - baseline - target - -\n", name.c_str(), cost);
    all.emplace_back(each.name);
  }
  const double cost = sweep_cost(all, sweeps, samples);
  const double share = cost / 100e3;
  std::printf("%-34s %8.2f us   ratio %.5f baseline 100ms target <=0.02 %s\n",
              ("collect_sweep_" + std::to_string(samples) + "_samples").c_str(), cost, share,
              share <= 0.02 ? "pass" : "miss");
  return 0;
}

}  // namespace
}  // namespace tocsin::bench

int main(int argc, char** argv) {
  return tocsin::bench::run(argc > 1 ? std::max(1, std::atoi(argv[1])) : 2000);
}
