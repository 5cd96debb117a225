#include "bench/latency_frames.h"

#include <vector>

#include "core/system_clock.h"

namespace tocsin::bench {

using namespace std::chrono_literals;
using Steady = std::chrono::steady_clock;

core::OutRecord frame_record(const core::RunUid& run, std::uint64_t sequence, bool bad) {
  static thread_local ingest::FrameWriter writer;
  static thread_local std::vector<core::SummaryRow> rows(kFrameRows);
  core::FrameHeader header;
  header.run = run;
  header.world_size = 1;
  header.mode = core::Mode::train;
  header.step = header.global_step = static_cast<std::int64_t>(sequence);
  header.time = core::nanoseconds(core::SystemClock().now());
  header.worker = core::name_hash("worker_0");
  header.incarnation = 1;
  header.sequence = sequence;
  for (int i = 0; i < kFrameRows; ++i) {
    auto& row = rows[static_cast<std::size_t>(i)];
    row = {};
    row.name = core::name_hash("gradient/layer" + std::to_string(i) + ".weight");
    row.count = 4096;
    row.abs_sum = 40.96;
    row.sumsq = row.m2 = 4.1;
    row.min = -0.1;
    row.max = 0.1;
    row.nan = bad && i == 0 ? 3 : 0;
    row.meta = core::meta::make(core::Dtype::f32, core::Role::gradient);
  }
  const auto frame = writer.summary(header, rows).finish();
  return {"telemetry", core::to_text(run),
          std::string(reinterpret_cast<const char*>(frame->data()), frame->size())};
}

FrameLoad::FrameLoad(ingest::Transport& transport, const core::RunUid& run, double per_second,
                     std::uint64_t after)
    : transport_(transport),
      run_(run),
      per_second_(per_second),
      after_(after),
      thread_([this](const std::stop_token& stop) { work(stop); }) {}

std::uint64_t FrameLoad::stop() {
  thread_.request_stop();
  if (thread_.joinable()) thread_.join();
  return after_ + sent_;
}

void FrameLoad::work(const std::stop_token& stop) {
  ingest::PublisherOptions options;
  options.writer = "load";
  options.linger = 5ms;
  auto publisher = transport_.publisher(options);
  if (!publisher) return;
  const auto start = Steady::now();
  while (!stop.stop_requested()) {
    const double due = per_second_ * std::chrono::duration<double>(Steady::now() - start).count();
    while (per_second_ <= 0 || static_cast<double>(sent_) < due) {
      ++sent_;
      const auto record = frame_record(run_, after_ + sent_, false);
      if (!(*publisher)->publish(record)) (void)(*publisher)->flush(50ms);
      if (stop.stop_requested()) break;
    }
    std::this_thread::sleep_for(2ms);
  }
  (void)(*publisher)->flush(10s);
}

}  // namespace tocsin::bench
