// From the produce of a bad frame to the issue readable, and to the training loop seeing the stop,
// on a real Kafka, in both guarantees, at light load and at half of what the machine takes: p50,
// p90 and p99, each beside its floor, the ratio with its 90 % interval. The floor is a chain of
// bare librdkafka loops with the same guarantees (latency_floor.h), on the same broker and at the
// same load, in turns of two seconds with the product. Product and floor run on one half of the cores,
// who makes the load and who looks on the other (cores.h); the broker has all.
// usage: latency_kafka [bootstrap] [samples] [guarantee] [frames/s]
//   (default $KAFKA_BOOTSTRAP_SERVERS, 2000 at least once and half of that exactly once, both)
//   With frames/s, at that load alone: half of what the machine takes is another load after every change.
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <thread>
#include <vector>

#include "app/app.h"
#include "app/log/logging.h"
#include "bench/bench_report.h"
#include "bench/cores.h"
#include "bench/latency_floor.h"
#include "bench/latency_frames.h"
#include "bench/latency_watch.h"
#include "bench/turns.h"
#include "core/system_clock.h"

namespace {

using namespace tocsin;
using namespace std::chrono_literals;
using bench::LatencyWatch;
using Values = std::map<std::string, bench::Turns>;  // by stage

constexpr int kTurn = 100;           // samples before the other side's turn
constexpr int kUncounted = 10;       // before them: caches, JIT
constexpr auto kSettle = 300ms;      // of the load, before those
constexpr double kLightLoad = 1000;  // frames/s: 100 000 tensors a second

/// Mean of the time between two bad frames, which is spread evenly over a fifth to nine fifths of
/// it: in step with nothing. A few times what the first link takes.
std::chrono::microseconds pause_of(const std::string& delivery) {
  return delivery == "exactly_once" ? 40ms : 13ms;
}

struct Phase {
  std::string name;
  double load = 0;
  double issue_target = 0;  // product's p99 over the floor's
  Values floor;
  Values product;
};

/// One side, alive for as long as its guarantee is measured; what is not measured just now idles.
struct Side {
  std::string prefix;
  std::unique_ptr<ingest::Transport> topics;
  std::unique_ptr<LatencyWatch> watch;
  std::uint64_t good_frames = 0;  // sent so far
};

/// One guarantee: the product and its floor on topics of their own, measured in turns of a second,
/// so that whatever else the machine does hits both.
class Bench {
 public:
  Bench(std::string bootstrap, std::string delivery, int samples, double load)
      : load_(load),
        bootstrap_(std::move(bootstrap)),
        delivery_(std::move(delivery)),
        turns_(std::max(1, samples / kTurn)),
        pause_(pause_of(delivery_).count() / 5, pause_of(delivery_).count() * 9 / 5),
        log_(app::make_log({"warn", "logfmt"}, clock_)) {
    product_.prefix =
        "lat" + std::to_string(std::chrono::system_clock::now().time_since_epoch().count());
    floor_.prefix = product_.prefix + "floor";
  }

  bool run() {
    if (!open(product_, true) || !open(floor_, false) || !start_product()) return false;
    Phase warm_up{"warm-up", kLightLoad, 0, {}, {}};
    turn(product_, warm_up, warm_up.product);  // also says how large its records are
    start_floor();
    measure(warm_up);
    if (load_ > 0) {
      Phase given{"given load", load_, 2, {}, {}};
      measure(given);
      print(given);
      return app_->stop();
    }
    Phase light{"light load", kLightLoad, 1.5, {}, {}};
    measure(light);
    print(light);
    if (!saturate()) return false;
    Phase half{"half load", saturation_ / 2, 2, {}, {}};
    measure(half);
    print(half);
    return app_->stop();
  }
  [[nodiscard]] bool missed() const { return missed_; }

 private:
  bool open(Side& side, bool product) {
    const auto config = configuration(side.prefix);
    if (!config) return false;
    auto opened = ingest::Transport::open(config->transport, config->topics, *log_, telemetry_);
    if (!opened) return std::cerr << opened.error().message << "\n", false;
    side.topics = std::move(*opened);
    bench::stay_on(bench::Half::world);
    if (const auto status = side.topics->ensure_topics(); !status)
      return std::cerr << status.error().message << "\n", false;
    side.watch = std::make_unique<LatencyWatch>(*side.topics, product);
    return true;
  }

  [[nodiscard]] std::optional<app::AppConfig> configuration(const std::string& prefix) const {
    const auto path = std::filesystem::temp_directory_path() /
                      ("tocsin-latency-" + std::to_string(::getpid()) + ".yaml");
    std::ofstream(path) << "transport: {kafka: {bootstrap.servers: '" << bootstrap_ << "'}}\n"
                        << "topics: {prefix: " << prefix
                        << ", partitions: 4}\n"
                        // Runs here end by falling silent, which is not what is measured.
                        << "engine: {threads: 1, lost_after: 24h, delivery: " << delivery_ << "}\n"
                        << "rules: [{use: exploding_tensor, actions: [stop]}]\n"
                        << "route: {receiver: none}\n"
                        << "receivers: {none: {}, stop: {stop_training: {armed: true, mode: stop, "
                           "max_stops: {count: 100000}, max_fraction: {of_running: 1}}}}\n"
                        << "http: {listen: '127.0.0.1:0'}\n";
    config::Diagnostics problems;
    auto config = app::load_config(path.string(), config::process_environment(), problems);
    std::filesystem::remove(path);
    for (const auto& item : problems.items()) std::cerr << config::to_text(item) << "\n";
    if (problems.has_errors()) return std::nullopt;
    return config;
  }

  bool start_product() {
    auto config = configuration(product_.prefix);
    if (!config) return false;
    app::AppOptions options;
    options.roles = {false, true, true};
    options.host = "bench";
    const auto open_transport = [this, transport = config->transport,
                                 topics = config->topics](core::Telemetry& telemetry) {
      return ingest::Transport::open(transport, topics, *log_, telemetry);
    };
    bench::stay_on(bench::Half::contender);
    auto started = app::App::start(std::move(*config), options, open_transport, clock_, *log_, 30s);
    if (!started) return std::cerr << started.error().message << "\n", false;
    bench::stay_on(bench::Half::world);
    app_ = std::move(*started);
    while (!app_->ready()) std::this_thread::sleep_for(10ms);
    return true;
  }

  void start_floor() {
    bench::stay_on(bench::Half::contender);
    bare_ = std::make_unique<bench::Floor>(
        bench::FloorOptions{bootstrap_, floor_.prefix, delivery_ == "exactly_once",
                            core::to_text(load_run_), product_.watch->sizes()});
    bench::stay_on(bench::Half::world);
    while (!bare_->ready()) std::this_thread::sleep_for(10ms);
  }

  core::RunUid next_run() {
    return core::run_uid_v5(product_.prefix + "/" + std::to_string(++runs_));
  }

  void measure(Phase& phase) {
    for (int i = 0; i < turns_; ++i) {
      turn(floor_, phase, phase.floor);
      turn(product_, phase, phase.product);
    }
  }

  /// Bad frames of runs of their own beside the phase's load.
  void turn(Side& side, const Phase& phase, Values& values) {
    std::vector<core::RunUid> runs;
    runs.reserve(kUncounted + kTurn);
    for (int i = 0; i < kUncounted + kTurn; ++i) runs.push_back(next_run());
    ingest::PublisherOptions options;
    options.writer = "job";
    options.linger = 0ms;
    auto publisher = side.topics->publisher(options);
    // What goes bad has been watched for a while: the product knows the run.
    if (&side == &product_) {
      for (const auto& run : runs) (void)(*publisher)->publish(bench::frame_record(run, 1, false));
    }
    (void)(*publisher)->flush(10s);
    bench::FrameLoad load(*side.topics, load_run_, phase.load, side.good_frames);
    std::this_thread::sleep_for(kSettle);
    auto due = std::chrono::steady_clock::now();
    for (int i = 0; i < kUncounted + kTurn; ++i) {
      const auto& run = runs[static_cast<std::size_t>(i)];
      const auto record = bench::frame_record(run, 2, true);
      if (i >= kUncounted) side.watch->produced(run);
      (void)(*publisher)->publish(record);
      due += std::chrono::microseconds(pause_(random_));
      std::this_thread::sleep_until(due);
    }
    side.good_frames = load.stop();
    if (const auto unseen = side.watch->wait(LatencyWatch::kStop, 10s); unseen > 0)
      std::cerr << side.prefix << ": " << unseen << " bad frames led to no stop within 10 s\n";
    for (auto& [stage, times] : side.watch->take()) values[stage].push_back(std::move(times));
  }

  /// Frames per second that get through the product: a flood of 3 s, and the time until a bad frame
  /// behind it shows.
  bool saturate() {
    const auto run = next_run();
    const auto before = product_.good_frames;
    product_.watch->produced(run);
    bench::FrameLoad flood(*product_.topics, load_run_, 0, product_.good_frames);
    std::this_thread::sleep_for(3s);
    product_.good_frames = flood.stop();
    ingest::PublisherOptions options;
    options.writer = "job";
    auto publisher = product_.topics->publisher(options);
    // In the flooded partition, so that it is read behind the flood.
    auto last = bench::frame_record(run, 1, true);
    last.partition_key = core::to_text(load_run_);
    (void)(*publisher)->publish(last);
    product_.watch->wait(LatencyWatch::kIssue, 60s);
    const auto times = product_.watch->take();
    const auto seen = times.find(LatencyWatch::kIssue);
    if (seen == times.end())
      return std::cerr << "the flood did not get through within a minute\n", false;
    saturation_ =
        static_cast<double>(product_.good_frames - before) / (seen->second.front() / 1000);
    bench::figure(delivery_ + ": saturation of this machine", saturation_, "frames/s");
    return true;
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
    for (const auto& [q, word] : {std::pair{0.5, " p50"}, {0.9, " p90"}, {0.99, " p99"}}) {
      const double value = bench::quantile(bench::joined(found->second), q);
      if (floor == phase.floor.end()) {
        bench::figure(name + word, value, "ms");
        continue;
      }
      if (!bench::beside(name + word, value, bench::quantile(bench::joined(floor->second), q), "ms",
                         q < 0.99 ? 0 : target))
        missed_ = true;
      const auto [low, high] = bench::ratio_interval(found->second, floor->second, q);
      std::printf("%-52s %zu and %zu samples, ratio %.3g to %.3g in 90 of 100 resamplings\n", "",
                  bench::joined(found->second).size(), bench::joined(floor->second).size(), low,
                  high);
    }
  }

  const double load_;  // 0: light, and half of what the machine takes
  const std::string bootstrap_;
  const std::string delivery_;
  const int turns_;
  std::uniform_int_distribution<std::int64_t> pause_;  // microseconds
  const core::RunUid load_run_ = core::run_uid_v5("load");
  core::SystemClock clock_;
  std::unique_ptr<core::Log> log_;
  core::NullTelemetry telemetry_;
  Side product_;
  Side floor_;
  std::unique_ptr<app::App> app_;
  std::unique_ptr<bench::Floor> bare_;
  std::mt19937 random_{1};
  std::uint64_t runs_ = 0;
  double saturation_ = 0;
  bool missed_ = false;
};

}  // namespace

int main(int argc, char** argv) {
  const char* given = argc > 1 ? argv[1] : std::getenv("KAFKA_BOOTSTRAP_SERVERS");
  if (given == nullptr)
    return std::cerr << "no broker: set KAFKA_BOOTSTRAP_SERVERS (tools/kafka start)\n", 2;
  const int samples = argc > 2 ? std::atoi(argv[2]) : 2000;
  bool missed = false;
  for (const std::string delivery : {"at_least_once", "exactly_once"}) {
    if (argc > 3 && delivery != argv[3]) continue;
    Bench bench(given, delivery, delivery == "exactly_once" ? samples / 2 : samples,
                argc > 4 ? std::atof(argv[4]) : 0);
    if (!bench.run()) return 2;
    missed = missed || bench.missed();
  }
  return missed ? 1 : 0;
}
