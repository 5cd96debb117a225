// From the produce of a bad frame to the issue readable, and to the training loop seeing the stop,
// on a real Kafka, at half load: p50 and p99 per stage, at-least-once beside exactly-once, same
// run. usage: latency_kafka [bootstrap] (default $KAFKA_BOOTSTRAP_SERVERS)
//
// The whole path is the product's: App with the roles evaluate and route; the "training loop" is a
// reader of `commands` as the hook's client thread is one (group-less, begins before the first
// stop).
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <map>
#include <mutex>
#include <thread>

#include "app/app.h"
#include "app/logging.h"
#include "app/system_clock.h"
#include "bench/bench_report.h"
#include "core/record.h"
#include "ingest/ingest.h"

namespace {

using namespace tocsin;
using namespace std::chrono_literals;
using Steady = std::chrono::steady_clock;

constexpr int kSamples = 300;
constexpr auto kEvery = 40ms;
constexpr int kRows = 100;
constexpr const char* kLight = "light load";
constexpr double kLightLoad = 1000;          // frames/s: 100 000 tensors a second
constexpr const char* kFloor = "no engine";  // broker, producer and a bare consumer alone

struct Times {
  Steady::time_point produced;
  std::map<std::string, double> stage_ms;  // since produced
};

std::string frame_of(const core::RunUid& uid, std::uint64_t sequence, std::int64_t step, bool bad) {
  static thread_local ingest::FrameWriter writer;
  static thread_local std::vector<core::SummaryRow> rows(kRows);
  core::FrameHeader header;
  header.run = uid;
  header.world_size = 1;
  header.mode = core::Mode::train;
  header.step = header.global_step = step;
  header.time = core::nanoseconds(app::SystemClock().now());
  header.worker = core::name_hash("worker_0");
  header.incarnation = 1;
  header.sequence = sequence;
  for (int i = 0; i < kRows; ++i) {
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
  return {reinterpret_cast<const char*>(frame->data()), frame->size()};
}

ingest::SourceOptions reading(const char* topic) {
  ingest::SourceOptions options;
  options.topics = {topic};
  options.start = ingest::Start::beginning;
  return options;
}

ingest::PublisherOptions writing(const char* name, std::chrono::milliseconds linger) {
  ingest::PublisherOptions options;
  options.writer = name;
  options.linger = linger;
  return options;
}

class Bench {
 public:
  Bench(std::string bootstrap, std::string delivery)
      : bootstrap_(std::move(bootstrap)),
        delivery_(std::move(delivery)),
        engine_(delivery_ != kFloor) {}

  bool run() {
    const auto path = std::filesystem::temp_directory_path() /
                      ("tocsin-latency-" + std::to_string(::getpid()) + ".yaml");
    prefix_ = "lat" + std::to_string(std::chrono::system_clock::now().time_since_epoch().count());
    std::ofstream(path) << "transport: {kafka: {bootstrap.servers: '" << bootstrap_ << "'}}\n"
                        << "topics: {prefix: " << prefix_ << ", partitions: 4}\n"
                        << "engine: {threads: 1, delivery: "
                        << (engine_ ? delivery_ : "exactly_once") << "}\n"
                        << "rules: [{use: exploding_tensor, actions: [stop]}]\n"
                        << "route: {receiver: none}\n"
                        << "receivers: {none: {}, stop: {stop_training: {armed: true, mode: stop, "
                           "max_stops: {count: 100000}}}}\n"
                        << "http: {listen: '127.0.0.1:0'}\n";
    config::Diagnostics problems;
    auto config = app::load_config(path.string(), config::process_environment(), problems);
    std::filesystem::remove(path);
    for (const auto& item : problems.items()) std::cerr << config::to_text(item) << "\n";
    if (problems.has_errors()) return false;
    const auto transport_config = config.transport;
    const auto topics = config.topics;
    log_ = app::make_log({"warn", "logfmt"}, clock_);
    app::AppOptions options;
    options.roles = {false, true, true};
    options.host = "bench";
    auto transport = ingest::Transport::open(transport_config, topics, *log_, telemetry_);
    if (!transport) return std::cerr << transport.error().message << "\n", false;
    if (const auto status = (*transport)->ensure_topics(); !status) {
      return std::cerr << status.error().message << "\n", false;
    }
    std::unique_ptr<app::App> app;
    if (engine_) {
      const auto open_transport = [&](core::Telemetry& telemetry) {
        return ingest::Transport::open(transport_config, topics, *log_, telemetry);
      };
      auto started =
          app::App::start(std::move(config), options, open_transport, clock_, *log_, 30s);
      if (!started) return std::cerr << started.error().message << "\n", false;
      app = std::move(*started);
      while (!app->ready()) std::this_thread::sleep_for(10ms);
    }
    measure(**transport);
    if (app) app->stop();
    return true;
  }

  void print() const {
    for (const auto& phase : phases_) {
      std::printf("%s, %s: %.0f frames/s of %d rows beside the samples\n", delivery_.c_str(),
                  phase.name.c_str(), phase.load, kRows);
      for (const char* stage :
           {"frame readable", "evaluated", "issue readable", "stop seen by the loop"}) {
        print(phase, stage);
      }
    }
    bench::figure(delivery_ + ": saturation of this machine", saturation_, "frames/s");
  }

 private:
  using Samples = std::map<core::RunUid, Times>;
  struct Phase {
    std::string name;
    double load = 0;
    Samples samples;
  };

  void print(const Phase& phase, const std::string& stage) const {
    std::vector<double> values;
    for (const auto& [uid, times] : phase.samples) {
      const auto at = times.stage_ms.find(stage);
      if (at != times.stage_ms.end()) values.push_back(at->second);
    }
    if (values.empty()) return;
    const std::string name = "  produce -> " + stage;
    bench::figure(name + " p50 (n=" + std::to_string(values.size()) + ")",
                  bench::quantile(values, 0.5), "ms");
    const double p99 = bench::quantile(values, 0.99);
    const bool light = phase.name == kLight;
    if (light && stage == "issue readable") {
      bench::judged(name + " p99", p99, "ms", delivery_ == "exactly_once" ? 40 : 15, false);
    } else if (!light && stage == "stop seen by the loop" && delivery_ == "exactly_once") {
      bench::judged(name + " p99", p99, "ms", 100, false);
    } else {
      bench::figure(name + " p99", p99, "ms");
    }
  }

  // Bad frames of runs of their own, one every 40 ms, beside `per_second` good frames.
  void sample(ingest::Transport& transport, const std::string& name, double per_second) {
    {
      const std::lock_guard lock(mutex_);
      times_.clear();
    }
    std::atomic<std::uint64_t> sent{0};
    std::jthread beside(
        [&](const std::stop_token& stop) { load(transport, per_second, stop, sent); });
    std::this_thread::sleep_for(1s);
    auto publisher = transport.publisher(writing("job", 0ms));
    for (int i = 0; i < kSamples; ++i) {
      const core::RunUid uid =
          core::run_uid_v5("sample/" + name + "/" + prefix_ + "/" + std::to_string(i));
      const core::OutRecord record{"telemetry", core::to_text(uid), frame_of(uid, 1, 1, true)};
      {
        const std::lock_guard lock(mutex_);
        times_[uid].produced = Steady::now();
      }
      (void)(*publisher)->publish(record);
      std::this_thread::sleep_for(kEvery);
    }
    std::this_thread::sleep_for(2s);
    const std::lock_guard lock(mutex_);
    phases_.push_back({name, per_second, times_});
  }

  void note(const core::RunUid& uid, const char* stage, double ms) {
    const std::lock_guard lock(mutex_);
    const auto at = times_.find(uid);
    if (at != times_.end()) at->second.stage_ms.emplace(stage, ms);
  }
  double since(const core::RunUid& uid) {
    const auto now = Steady::now();
    const std::lock_guard lock(mutex_);
    const auto at = times_.find(uid);
    return at == times_.end()
               ? 0
               : std::chrono::duration<double, std::milli>(now - at->second.produced).count();
  }

  // As fast as broker and engine together take frames: counted where the engine's issues stop
  // lagging.
  void load(ingest::Transport& transport, double per_second, const std::stop_token& stop,
            std::atomic<std::uint64_t>& sent) {
    auto publisher = transport.publisher(writing("load", 5ms));
    const core::RunUid uid = core::run_uid_v5("load/" + prefix_);
    std::uint64_t sequence = 0;
    const auto start = Steady::now();
    while (!stop.stop_requested()) {
      const double due = per_second * std::chrono::duration<double>(Steady::now() - start).count();
      while (per_second <= 0 || static_cast<double>(sequence) < due) {
        ++sequence;
        core::OutRecord record{"telemetry", core::to_text(uid),
                               frame_of(uid, sequence, static_cast<std::int64_t>(sequence), false)};
        if (!(*publisher)->publish(record)) (void)(*publisher)->flush(50ms);
        if (per_second <= 0 && sequence % 256 == 0) break;
        if (stop.stop_requested()) break;
      }
      sent = sequence;
      if (per_second > 0) std::this_thread::sleep_for(2ms);
    }
    (void)(*publisher)->flush(5s);
  }

  // Frames per second that get through: a flood of 3 s, and the time until what was sent last
  // shows.
  double saturate(ingest::Transport& transport, std::atomic<std::uint64_t>& sent) {
    const core::RunUid uid = core::run_uid_v5("load/" + prefix_);
    {
      const std::lock_guard lock(mutex_);
      times_[uid].produced = Steady::now();
    }
    std::jthread flood([&](const std::stop_token& stop) { load(transport, 0, stop, sent); });
    std::this_thread::sleep_for(3s);
    flood.request_stop();
    flood.join();
    auto publisher = transport.publisher(writing("job", 0ms));
    const core::OutRecord last{"telemetry", core::to_text(uid),
                               frame_of(uid, sent + 1, static_cast<std::int64_t>(sent) + 1, true)};
    (void)(*publisher)->publish(last);
    const char* const shown = engine_ ? "issue readable" : "frame readable";
    double ms = 0;
    for (int i = 0; i < 6000 && ms == 0; ++i) {
      std::this_thread::sleep_for(5ms);
      const std::lock_guard lock(mutex_);
      const auto& stages = times_[uid].stage_ms;
      if (const auto at = stages.find(shown); at != stages.end()) ms = at->second;
    }
    const std::lock_guard lock(mutex_);
    times_.erase(uid);
    return ms == 0 ? 0 : static_cast<double>(sent) / (ms / 1000);
  }

  void measure(ingest::Transport& transport) {
    std::jthread frames([&](const std::stop_token& stop) {
      if (engine_) return;  // the floor: what a consumer that does nothing sees
      auto source = transport.source(reading("telemetry"));
      while (!stop.stop_requested()) {
        (void)(*source)->poll(20ms, 2048, [&](const core::RecordView& record) {
          const auto decoded = ingest::decode_frame(record.value);
          if (!decoded || decoded.frame().header().kind != core::FrameKind::summary) return;
          if (decoded.frame().column<std::uint64_t>(core::summary_column::nan)[0] == 0) return;
          const core::RunUid uid = decoded.frame().header().run;
          note(uid, "frame readable", since(uid));
        });
      }
    });
    std::jthread issues([&](const std::stop_token& stop) {
      auto source = transport.source(reading("issues"));
      while (!stop.stop_requested()) {
        (void)(*source)->poll(20ms, 256, [&](const core::RecordView& record) {
          const auto decoded = ingest::decode_event(record);
          if (!decoded) return;
          const auto* issue = std::get_if<core::Issue>(&decoded->event);
          if (issue == nullptr || issue->status != core::IssueStatus::firing) return;
          note(issue->run.uid, "issue readable", since(issue->run.uid));
          const auto wall = [](core::WallTime a, core::WallTime b) {
            return std::chrono::duration<double, std::milli>(a - b).count();
          };
          note(issue->run.uid, "evaluated", wall(issue->evaluated_at, issue->measured_at));
        });
      }
    });
    std::jthread loop([&](const std::stop_token& stop) {
      auto source = transport.source(reading("commands"));
      while (!stop.stop_requested()) {
        (void)(*source)->poll(20ms, 256, [&](const core::RecordView& record) {
          if (const auto command = ingest::decode_command(record))
            note(command->run, "stop seen by the loop", since(command->run));
        });
      }
    });
    std::this_thread::sleep_for(1s);
    sample(transport, "warm-up", kLightLoad);  // the broker's JIT, first transactions, coordinators
    phases_.clear();
    sample(transport, kLight, kLightLoad);
    std::atomic<std::uint64_t> sent{0};
    saturation_ = saturate(transport, sent);
    sample(transport, "half of what the machine takes", saturation_ / 2);
  }

  std::string bootstrap_;
  std::string delivery_;
  bool engine_;
  std::string prefix_;
  app::SystemClock clock_;
  std::unique_ptr<core::Log> log_;
  core::NullTelemetry telemetry_;
  std::mutex mutex_;  // guards times_
  Samples times_;
  std::vector<Phase> phases_;
  double saturation_ = 0;
};

}  // namespace

int main(int argc, char** argv) {
  const char* given = argc > 1 ? argv[1] : std::getenv("KAFKA_BOOTSTRAP_SERVERS");
  if (given == nullptr)
    return std::cerr << "no broker: set KAFKA_BOOTSTRAP_SERVERS (tools/kafka start)\n", 2;
  for (const char* delivery : {kFloor, "at_least_once", "exactly_once"}) {
    Bench bench(given, delivery);
    if (!bench.run()) return 1;
    bench.print();
  }
  return 0;
}
