// Runs that start and end, written into the registry of a journal at a rate.
//
//   runs_feed FOLDER RATE SECONDS    RATE runs start and end in each second
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>

#include "core/log.h"
#include "core/system_clock.h"
#include "core/telemetry.h"
#include "ingest/ingest.h"

namespace {

using namespace tocsin;  // a program of one file

core::NullLog quiet;
core::NullTelemetry uncounted;

core::JobEvent started(int number, core::WallTime now) {
  core::JobEvent job;
  job.run.uid = core::run_uid_for("created", std::to_string(number));
  job.run.job = "job-" + std::to_string(number % 50);
  job.labels = {{"team", "team-" + std::to_string(number % 7)}};
  job.world_size = 8;
  job.time = now;
  job.started_at = now;
  return job;
}

core::JobEvent ended(int number, core::WallTime now) {
  core::JobEvent job = started(number, now);
  job.phase = core::JobPhase::ended;
  job.ended_at = now;
  job.outcome = number % 3 == 0 ? "failed" : "completed";
  return job;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) {
    std::fprintf(stderr, "usage: runs_feed FOLDER RATE SECONDS\n");
    return 2;
  }
  ingest::TransportConfig cfg;
  cfg.journal = argv[1];
  auto transport = ingest::Transport::open(cfg, {}, quiet, uncounted);
  if (!transport) return std::fprintf(stderr, "%s\n", transport.error().message.c_str()), 2;
  auto publisher = (*transport)->publisher({});
  if (!publisher) return std::fprintf(stderr, "%s\n", publisher.error().message.c_str()), 2;
  const core::SystemClock clock;
  const auto put = [&](const core::JobEvent& job) {
    const auto record = ingest::encode_registry(job, "bench");
    while (!(*publisher)->publish(record))
      std::this_thread::sleep_for(std::chrono::milliseconds{1});
  };
  const auto begin = std::chrono::steady_clock::now();
  const int rate = std::atoi(argv[2]);
  const int all = rate * std::atoi(argv[3]);
  for (int number = 0; number < all; ++number) {
    std::this_thread::sleep_until(
        begin + std::chrono::microseconds(std::int64_t{1'000'000} * number / rate));
    put(started(number, clock.now()));
    if (number >= rate) put(ended(number - rate, clock.now()));  // each runs for a second
  }
  for (int number = std::max(0, all - rate); number < all; ++number)
    put(ended(number, clock.now()));
  return (*publisher)->flush(std::chrono::seconds{60}) ? 0 : 2;
}
