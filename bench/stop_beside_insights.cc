// From a bad frame to the stop that the training loop sees, with the store of the page in the same process and
// without it: two programs on journals of their own, in turns, each at half of what the one without takes.
// usage: stop_beside_insights [samples of each, 600] [frames a second]
//   With frames a second, at that load in place of half: what else runs may take what half wants.
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "app/app.h"
#include "app/log/logging.h"
#include "bench/bench_report.h"
#include "bench/latency_frames.h"
#include "bench/latency_watch.h"
#include "bench/turns.h"
#include "core/system_clock.h"

namespace {

using namespace tocsin;  // a program of one file
using namespace std::chrono_literals;
using bench::LatencyWatch;

constexpr int kOfATurn = 50;      // samples
constexpr auto kBetween = 20ms;   // two bad frames
constexpr auto kSettled = 300ms;  // of the load
constexpr double kMost = 1.1;     // p99 with, over p99 without

void must(bool holds, const std::string& what) {
  if (holds) return;
  std::cerr << "stop_beside_insights: " << what << "\n";
  std::exit(2);
}

/// One program on a journal.
class Side {
 public:
  Side(const std::filesystem::path& folder, bool insights, core::Clock& clock, core::Log& log)
      : load_run_(core::run_uid_v5(folder.string())) {
    std::filesystem::create_directories(folder);
    const auto path = folder / "tocsin.yaml";
    std::ofstream(path) << "transport: {journal: " << (folder / "journal").string()
                        << "}\n"
                           "engine: {threads: 1, lost_after: 24h}\n"
                           "rules: [{use: exploding_tensor, actions: [stop]}]\n"
                           "route: {receiver: none}\n"
                           "receivers: {none: {}, stop: {stop_training: {armed: true, mode: stop, "
                           "max_stops: {count: 100000}, max_fraction: {of_running: 1}}}}\n"
                           "http: {listen: '127.0.0.1:0'}\n"
                           "insights: {enabled: "
                        << (insights ? "true" : "false") << "}\n";
    config::Diagnostics problems;
    auto config = app::load_config(path.string(), config::process_environment(), problems);
    for (const auto& item : problems.items()) std::cerr << config::to_text(item) << "\n";
    must(!problems.has_errors(), "the configuration");
    auto topics = ingest::Transport::open(config.transport, config.topics, log, telemetry_);
    must(topics.has_value(), "opening the journal");
    topics_ = std::move(*topics);
    const auto open_transport = [transport = config.transport, names = config.topics,
                                 &log](core::Telemetry& telemetry) {
      return ingest::Transport::open(transport, names, log, telemetry);
    };
    app::AppOptions options;
    options.roles = {false, true, true};
    options.host = "bench";
    auto started = app::App::start(std::move(config), options, open_transport, clock, log, 30s);
    must(started.has_value(), "starting");
    app_ = std::move(*started);
    while (!app_->ready()) std::this_thread::sleep_for(10ms);
    watch_ = std::make_unique<LatencyWatch>(*topics_, true);
  }

  /// Frames a second that get through.
  double saturation() {
    const auto run = core::run_uid_v5("last");
    watch_->produced(run);
    const auto begin = std::chrono::steady_clock::now();
    bench::FrameLoad flood(*topics_, load_run_, 0, good_frames_);
    std::this_thread::sleep_for(3s);
    good_frames_ = flood.stop();
    publish(run, 1, true);
    must(watch_->wait(LatencyWatch::kIssue, 120s) == 0, "the flood did not get through");
    (void)watch_->take();
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
    return static_cast<double>(good_frames_) / took.count();
  }

  /// Milliseconds until the stop was seen, of the samples of one turn.
  std::vector<double> turn(double load, std::uint64_t& runs) {
    std::vector<core::RunUid> these;
    for (int at = 0; at < kOfATurn; ++at) {
      these.push_back(core::run_uid_v5("sample " + std::to_string(++runs)));
      publish(these.back(), 1, false);
    }
    bench::FrameLoad good(*topics_, load_run_, load, good_frames_);
    std::this_thread::sleep_for(kSettled);
    for (const core::RunUid& run : these) {
      watch_->produced(run);
      publish(run, 2, true);
      std::this_thread::sleep_for(kBetween + std::chrono::milliseconds(chance_() % 20));
    }
    good_frames_ = good.stop();
    must(watch_->wait(LatencyWatch::kStop, 120s) == 0, "a bad frame led to no stop");
    return std::move(watch_->take()[LatencyWatch::kStop]);
  }
  bool stop() { return app_->stop(); }

 private:
  void publish(const core::RunUid& run, std::uint64_t sequence, bool bad) {
    if (!publisher_) {
      ingest::PublisherOptions options;
      options.writer = "job";
      options.linger = 0ms;
      auto made = topics_->publisher(options);
      must(made.has_value(), "a publisher");
      publisher_ = std::move(*made);
    }
    must(publisher_->publish(bench::frame_record(run, sequence, bad)).has_value(), "publishing");
  }

  core::NullTelemetry telemetry_;
  const core::RunUid load_run_;
  std::unique_ptr<ingest::Transport> topics_;
  std::unique_ptr<app::App> app_;
  std::unique_ptr<LatencyWatch> watch_;
  std::unique_ptr<core::RecordPublisher> publisher_;
  std::uint64_t good_frames_ = 0;
  std::mt19937 chance_{1};
};

}  // namespace

int main(int argc, char** argv) {
  const int turns = std::max(1, (argc > 1 ? std::atoi(argv[1]) : 600) / kOfATurn);
  const auto folder = std::filesystem::temp_directory_path() /
                      ("stop-beside-insights-" + std::to_string(::getpid()));
  core::SystemClock clock;
  const auto log = app::make_log({"warn", "logfmt"}, clock);
  bool met = true;
  {
    Side without(folder / "without", false, clock, *log);
    Side with(folder / "with", true, clock, *log);
    const double half = argc > 2 ? std::atof(argv[2]) : without.saturation() / 2;
    bench::figure(argc > 2 ? "the load" : "half of what the one without takes", half, "frames/s");
    bench::Turns bare;
    bench::Turns ours;
    std::uint64_t runs = 0;
    (void)with.turn(half, runs);  // warm
    (void)without.turn(half, runs);
    for (int at = 0; at < turns; ++at) {
      bare.push_back(without.turn(half, runs));
      ours.push_back(with.turn(half, runs));
    }
    for (const auto& [share, word] : {std::pair{0.5, "p50"}, {0.9, "p90"}, {0.99, "p99"}})
      met = bench::beside(std::string("stop with the store beside without, ") + word,
                          bench::quantile(bench::joined(ours), share),
                          bench::quantile(bench::joined(bare), share), "ms",
                          share < 0.99 ? 0 : kMost) &&
            met;
    const auto [low, high] = bench::ratio_interval(ours, bare, 0.99);
    std::printf("ratio of p99 %.3g to %.3g in 90 of 100 resamplings\n", low, high);
    with.stop();
    without.stop();
  }
  std::filesystem::remove_all(folder);
  return met ? 0 : 1;
}
