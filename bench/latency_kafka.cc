// From the produce of a bad frame to the issue readable, and to the training loop seeing the stop,
// on a real Kafka, in both guarantees, at light load and at half of what the machine takes: p50 and
// p99, each beside its floor. The floor is a chain of bare librdkafka loops with the same
// guarantees (latency_floor.h), on the same broker and at the same load, in turns with the product.
// usage: latency_kafka [bootstrap] [samples per turn] (default $KAFKA_BOOTSTRAP_SERVERS, 200)
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <map>
#include <memory>
#include <thread>

#include "app/app.h"
#include "app/logging.h"
#include "app/system_clock.h"
#include "bench/bench_report.h"
#include "bench/latency_floor.h"
#include "bench/latency_frames.h"
#include "bench/latency_watch.h"

namespace {

using namespace tocsin;
using namespace std::chrono_literals;
using bench::LatencyWatch;
using Values = std::map<std::string, std::vector<double>>;  // by stage

constexpr auto kEvery = 40ms;
constexpr int kTurns = 2;            // of each side
constexpr int kUncounted = 25;       // at the start of a turn: connections, coordinators
constexpr double kLightLoad = 1000;  // frames/s: 100 000 tensors a second

struct Phase {
  std::string name;
  double load = 0;
  double issue_target = 0;  // product's p99 over the floor's
  Values floor;
  Values product;
};

/// One guarantee: two sets of topics, one for the product and one for its floor.
class Bench {
 public:
  Bench(std::string bootstrap, std::string delivery, int samples)
      : bootstrap_(std::move(bootstrap)),
        delivery_(std::move(delivery)),
        samples_(samples),
        prefix_("lat" +
                std::to_string(std::chrono::system_clock::now().time_since_epoch().count())),
        log_(app::make_log({"warn", "logfmt"}, clock_)) {}

  bool run() {
    if (!open(prefix_, product_topics_) || !open(prefix_ + "floor", floor_topics_)) return false;
    Phase warm_up{"warm-up", kLightLoad, 0, {}, {}};
    if (!product_turn(warm_up))
      return false;  // the broker's JIT; and it says how large records are
    floor_turn(warm_up);
    Phase light{"light load", kLightLoad, 1.5, {}, {}};
    for (int turn = 0; turn < kTurns; ++turn) {
      floor_turn(light);
      if (!product_turn(light)) return false;
    }
    print(light);
    if (!saturate()) return false;
    Phase half{"half load", saturation_ / 2, 2, {}, {}};
    for (int turn = 0; turn < kTurns; ++turn) {
      floor_turn(half);
      if (!product_turn(half)) return false;
    }
    print(half);
    return true;
  }
  [[nodiscard]] bool missed() const { return missed_; }

 private:
  bool open(const std::string& prefix, std::unique_ptr<ingest::Transport>& transport) {
    const auto config = configuration(prefix);
    if (!config) return false;
    auto opened = ingest::Transport::open(config->transport, config->topics, *log_, telemetry_);
    if (!opened) return std::cerr << opened.error().message << "\n", false;
    transport = std::move(*opened);
    if (const auto status = transport->ensure_topics(); !status)
      return std::cerr << status.error().message << "\n", false;
    return true;
  }

  [[nodiscard]] std::optional<app::AppConfig> configuration(const std::string& prefix) const {
    const auto path = std::filesystem::temp_directory_path() /
                      ("tocsin-latency-" + std::to_string(::getpid()) + ".yaml");
    std::ofstream(path) << "transport: {kafka: {bootstrap.servers: '" << bootstrap_ << "'}}\n"
                        << "topics: {prefix: " << prefix << ", partitions: 4}\n"
                        << "engine: {threads: 1, delivery: " << delivery_ << "}\n"
                        << "rules: [{use: exploding_tensor, actions: [stop]}]\n"
                        << "route: {receiver: none}\n"
                        << "receivers: {none: {}, stop: {stop_training: {armed: true, mode: stop, "
                           "max_stops: {count: 100000}}}}\n"
                        << "http: {listen: '127.0.0.1:0'}\n";
    config::Diagnostics problems;
    auto config = app::load_config(path.string(), config::process_environment(), problems);
    std::filesystem::remove(path);
    for (const auto& item : problems.items()) std::cerr << config::to_text(item) << "\n";
    if (problems.has_errors()) return std::nullopt;
    return config;
  }

  std::unique_ptr<app::App> start_product() {
    auto config = configuration(prefix_);
    if (!config) return nullptr;
    app::AppOptions options;
    options.roles = {false, true, true};
    options.host = "bench";
    const auto open_transport = [this, transport = config->transport,
                                 topics = config->topics](core::Telemetry& telemetry) {
      return ingest::Transport::open(transport, topics, *log_, telemetry);
    };
    auto started = app::App::start(std::move(*config), options, open_transport, clock_, *log_, 30s);
    if (!started) {
      std::cerr << started.error().message << "\n";
      return nullptr;
    }
    while (!(*started)->ready()) std::this_thread::sleep_for(10ms);
    return std::move(*started);
  }

  bool product_turn(Phase& phase) {
    const auto app = start_product();
    if (!app) return false;
    LatencyWatch watch(*product_topics_, true);
    sample(*product_topics_, watch, phase, phase.product);
    sizes_ = watch.sizes();
    return app->stop();
  }

  void floor_turn(Phase& phase) {
    const bench::Floor floor({bootstrap_, prefix_ + "floor", delivery_ == "exactly_once",
                              core::to_text(load_run_), sizes_});
    while (!floor.ready()) std::this_thread::sleep_for(10ms);
    LatencyWatch watch(*floor_topics_, false);
    sample(*floor_topics_, watch, phase, phase.floor);
  }

  core::RunUid next_run() { return core::run_uid_v5(prefix_ + "/" + std::to_string(++runs_)); }

  /// Bad frames of runs of their own, one every 40 ms, beside the phase's load.
  void sample(ingest::Transport& transport, LatencyWatch& watch, const Phase& phase,
              Values& values) {
    bench::FrameLoad load(transport, load_run_, phase.load, load_sent_);
    std::this_thread::sleep_for(1s);
    ingest::PublisherOptions options;
    options.writer = "job";
    options.linger = 0ms;
    auto publisher = transport.publisher(options);
    auto due = std::chrono::steady_clock::now();
    for (int i = 0; i < samples_ + kUncounted; ++i) {
      const auto run = next_run();
      const auto record = bench::frame_record(run, 1, true);
      if (i >= kUncounted) watch.produced(run);
      (void)(*publisher)->publish(record);
      due += kEvery;
      std::this_thread::sleep_until(due);
    }
    std::this_thread::sleep_for(2s);
    load_sent_ = load.stop();
    for (auto& [stage, times] : watch.take()) {
      auto& all = values[stage];
      all.insert(all.end(), times.begin(), times.end());
    }
  }

  /// Frames per second that get through the product: a flood of 3 s, and the time until a bad frame
  /// behind it shows.
  bool saturate() {
    const auto app = start_product();
    if (!app) return false;
    LatencyWatch watch(*product_topics_, true);
    const auto run = next_run();
    const auto before = load_sent_;
    std::this_thread::sleep_for(1s);
    watch.produced(run);
    bench::FrameLoad flood(*product_topics_, load_run_, 0, load_sent_);
    std::this_thread::sleep_for(3s);
    load_sent_ = flood.stop();
    ingest::PublisherOptions options;
    options.writer = "job";
    auto publisher = product_topics_->publisher(options);
    // Behind the flood: a frame of the flooded partition, by a run that shares its key.
    auto last = bench::frame_record(run, 1, true);
    last.partition_key = core::to_text(load_run_);
    (void)(*publisher)->publish(last);
    std::optional<double> ms;
    for (int i = 0; i < 12000 && !ms; ++i) {
      std::this_thread::sleep_for(5ms);
      ms = watch.seen(run, LatencyWatch::kIssue);
    }
    if (!ms) return std::cerr << "the flood did not get through within a minute\n", false;
    saturation_ = static_cast<double>(load_sent_ - before) / (*ms / 1000);
    bench::figure(delivery_ + ": saturation of this machine", saturation_, "frames/s");
    return app->stop();
  }

  void print(const Phase& phase) {
    std::printf("%s, %s: %.0f frames/s of %d rows beside the samples\n", delivery_.c_str(),
                phase.name.c_str(), phase.load, bench::kFrameRows);
    const bool exactly_once = delivery_ == "exactly_once";
    print(phase, LatencyWatch::kEvaluated, 0);
    print(phase, LatencyWatch::kIssue, phase.issue_target);
    print(phase, LatencyWatch::kNotification, 0);
    print(phase, LatencyWatch::kStop, exactly_once ? 2 : 0);
  }

  /// `target` 0: none.
  void print(const Phase& phase, const std::string& stage, double target) {
    const auto found = phase.product.find(stage);
    if (found == phase.product.end()) return;
    const auto floor = phase.floor.find(stage);
    const std::string name = "  produce -> " + stage;
    for (const double q : {0.5, 0.99}) {
      const std::string part =
          name + (q < 0.9 ? " p50" : " p99") + " (n=" + std::to_string(found->second.size()) + ")";
      const double value = bench::quantile(found->second, q);
      if (floor == phase.floor.end()) {
        bench::figure(part, value, "ms");
        continue;
      }
      if (!bench::beside(part, value, bench::quantile(floor->second, q), "ms",
                         q < 0.9 ? 0 : target))
        missed_ = true;
    }
  }

  const std::string bootstrap_;
  const std::string delivery_;
  const int samples_;
  const std::string prefix_;
  const core::RunUid load_run_ = core::run_uid_v5("load");
  app::SystemClock clock_;
  std::unique_ptr<core::Log> log_;
  core::NullTelemetry telemetry_;
  std::unique_ptr<ingest::Transport> product_topics_;
  std::unique_ptr<ingest::Transport> floor_topics_;
  bench::RecordSizes sizes_;
  std::uint64_t load_sent_ = 0;
  std::uint64_t runs_ = 0;
  double saturation_ = 0;
  bool missed_ = false;
};

}  // namespace

int main(int argc, char** argv) {
  const char* given = argc > 1 ? argv[1] : std::getenv("KAFKA_BOOTSTRAP_SERVERS");
  if (given == nullptr)
    return std::cerr << "no broker: set KAFKA_BOOTSTRAP_SERVERS (tools/kafka start)\n", 2;
  const int samples = argc > 2 ? std::atoi(argv[2]) : 200;
  bool missed = false;
  for (const char* delivery : {"at_least_once", "exactly_once"}) {
    Bench bench(given, delivery, samples);
    if (!bench.run()) return 2;
    missed = missed || bench.missed();
  }
  return missed ? 1 : 0;
}
