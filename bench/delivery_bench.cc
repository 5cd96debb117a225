// Delivery as shipped: lanes, pool and libcurl against a receiver on loopback that keeps its
// connections, beside a bare curl loop over kept connections in the same run.
//
//   delivery_bench [seconds]    exit 1: a target was missed
//
// CPU is the process's less the receiver's own. Alertmanager's figures are from the same kind of
// machine (2 cores): 2 200–2 600 webhooks/s, 490–690 µs of CPU each.
#include <curl/curl.h>
#include <sys/resource.h>

#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "actions/actions.h"
#include "bench/bench_report.h"
#include "config/config.h"
#include "core/clock.h"
#include "tests/support/http_sink.h"

namespace tocsin::actions {
namespace {

using namespace std::chrono_literals;
using Steady = std::chrono::steady_clock;

class RealClock final : public core::Clock {
 public:
  [[nodiscard]] core::WallTime now() const override {
    return std::chrono::time_point_cast<core::Duration>(std::chrono::system_clock::now());
  }
  [[nodiscard]] core::Duration monotonic() const override {
    return Steady::now().time_since_epoch();
  }
};

double cpu_seconds() {
  rusage used{};
  getrusage(RUSAGE_SELF, &used);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) / 1e6;
  };
  return seconds(used.ru_utime) + seconds(used.ru_stime);
}

struct Rate {
  double per_second = 0;
  double cpu_us = 0;  // each
};

core::Notification message(const std::string& integration, std::uint64_t serial) {
  core::Issue issue;
  issue.event_id = "iss_" + std::to_string(serial);
  issue.rule = issue.rule_type = "exploding_tensor";
  issue.severity = core::Severity::error;
  issue.labels = {{"rule", "exploding_tensor"},
                  {"severity", "error"},
                  {"job", "digits"},
                  {"cluster", "c1"},
                  {"team", "nlp"},
                  {"tensor", "gradient/w"}};
  issue.summary = "gradient/w holds 17 values that are NaN or infinite.";
  issue.run.job = "digits";
  issue.evidence.observed = {"non_finite", 17};
  core::Notification out;
  out.notification_id = "ntf_" + std::to_string(serial);
  out.integration = integration;
  out.type = "webhook";
  out.receiver = "oncall";
  out.group_key = "g" + std::to_string(serial);
  out.reason = "first";
  out.firing_count = 1;
  out.issues.push_back({core::issue_key(issue.labels), 1, issue, std::nullopt});
  out.decided_at = RealClock().now();
  return out;
}

ReceiversConfig receivers_of(const std::string& yaml) {
  ReceiversConfig out;
  config::Diagnostics diagnostics;
  const auto document = config::Document::parse(
      yaml, "bench.yaml", [](const std::string&) { return std::nullopt; }, diagnostics);
  if (document) {
    document->read(diagnostics, [&](config::Reader& root) { read_receivers(root, out); });
  }
  for (const auto& item : diagnostics.items()) {
    std::fprintf(stderr, "%s\n", to_text(item).c_str());
    std::exit(2);
  }
  return out;
}

// What the deliverer does, without its topics.
class Deliverer {
 public:
  explicit Deliverer(const ReceiversConfig& receivers)
      : lanes_(
            lane_options(receivers), [] { return 0.5; }, telemetry_) {
    Environment environment;
    environment.clock = &clock_;
    environment.log = &log_;
    environment.telemetry = &telemetry_;
    for (const auto& integration : receivers.integrations) {
      actions_[integration.common.id] = std::move(*integration.build(environment));
    }
    PoolOptions options;
    options.action = [this](std::string_view id) { return actions_.find(id)->second.get(); };
    options.on_finished = [this] {
      const std::lock_guard lock(mutex_);
      woken_ = true;
      wake_.notify_one();
    };
    pool_ = std::make_unique<DeliveryPool>(std::move(options));
  }

  void enqueue(core::Notification notification) {
    notification.rendered = *actions_.at(notification.integration)->render(notification);
    lanes_.enqueue(std::move(notification), clock_.now());
  }

  // One turn: starts what may start, waits for an end, settles. How many ended, by integration.
  std::size_t turn(const std::string& of) {
    while (auto attempt = lanes_.next(clock_.now())) pool_->submit(std::move(*attempt));
    {
      std::unique_lock lock(mutex_);
      wake_.wait_for(lock, 100ms, [this] { return woken_; });
      woken_ = false;
    }
    std::size_t ended = 0;
    for (const auto& [attempt, outcome] : pool_->take()) {
      lanes_.finished(attempt, *outcome, clock_.now());
      if (attempt.integration == of) ++ended;
    }
    lanes_.take();
    return ended;
  }

  [[nodiscard]] std::size_t threads() const { return pool_->threads(); }
  void end() { pool_.reset(); }

 private:
  RealClock clock_;
  core::NullLog log_;
  core::NullTelemetry telemetry_;
  std::map<std::string, std::unique_ptr<core::Action>, std::less<>> actions_;
  DeliveryLanes lanes_;
  std::mutex mutex_;  // guards woken_
  std::condition_variable wake_;
  bool woken_ = false;
  std::unique_ptr<DeliveryPool> pool_;
};

std::string yaml_of(const std::string& name, const std::string& url) {
  return "  " + name + ": {webhook: {url: '" + url +
         "', allow_private: [127.0.0.0/8], timeout: 2s}}\n";
}

// `count` messages of as many groups through one integration at default concurrency.
Rate through_lanes(std::uint64_t count, double* seconds = nullptr) {
  tests::HttpSink sink;
  Deliverer deliverer(receivers_of("receivers:\n" + yaml_of("a", sink.url())));
  std::vector<core::Notification> due;
  for (std::uint64_t i = 0; i < count; ++i) due.push_back(message("a/webhook", i));
  const double cpu = cpu_seconds();
  const auto begin = Steady::now();
  for (auto& one : due) deliverer.enqueue(std::move(one));
  for (std::uint64_t done = 0; done < count;) done += deliverer.turn("a/webhook");
  const double took = std::chrono::duration<double>(Steady::now() - begin).count();
  const double used = cpu_seconds() - cpu - sink.cpu_seconds();
  if (seconds != nullptr) *seconds = took;
  const auto n = static_cast<double>(count);
  return {n / took, used / n * 1e6};
}

// The floor: four threads, each with one handle, the same bytes, nothing else.
Rate bare_curl(std::uint64_t count) {
  tests::HttpSink sink;
  const std::string url = sink.url();
  const std::string body(1500, 'x');
  const double cpu = cpu_seconds();
  const auto begin = Steady::now();
  std::vector<std::jthread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      CURL* const handle = curl_easy_init();
      curl_slist* const headers = curl_slist_append(nullptr, "content-type: application/json");
      curl_easy_setopt(handle, CURLOPT_URL, url.c_str());
      curl_easy_setopt(handle, CURLOPT_PROXY, "");
      curl_easy_setopt(handle, CURLOPT_NOSIGNAL, 1L);
      curl_easy_setopt(handle, CURLOPT_POSTFIELDS, body.c_str());
      curl_easy_setopt(handle, CURLOPT_HTTPHEADER, headers);
      for (std::uint64_t i = 0; i < count / 4; ++i) curl_easy_perform(handle);
      curl_slist_free_all(headers);
      curl_easy_cleanup(handle);
    });
  }
  threads.clear();
  const double took = std::chrono::duration<double>(Steady::now() - begin).count();
  const auto n = static_cast<double>(count / 4 * 4);
  return {n / took, (cpu_seconds() - cpu - sink.cpu_seconds()) / n * 1e6};
}

// How long the message of the 21st integration takes while 20 others hang, all their calls out.
double beside_hanging_ms() {
  tests::HttpSink sink;
  std::string yaml = "receivers:\n" + yaml_of("well", sink.url());
  for (int i = 0; i < 20; ++i) yaml += yaml_of("hangs" + std::to_string(i), sink.url("/hang"));
  Deliverer deliverer(receivers_of(yaml));
  std::uint64_t serial = 0;
  for (int i = 0; i < 20; ++i) {
    for (int n = 0; n < 8; ++n) {
      deliverer.enqueue(message("hangs" + std::to_string(i) + "/webhook", ++serial));
    }
  }
  while (sink.requests() < 80) deliverer.turn("");
  double worst = 0;
  for (int n = 0; n < 50; ++n) {
    const auto begin = Steady::now();
    deliverer.enqueue(message("well/webhook", ++serial));
    while (deliverer.turn("well/webhook") == 0) {
    }
    worst =
        std::max(worst, std::chrono::duration<double, std::milli>(Steady::now() - begin).count());
  }
  sink.drop_connections();
  deliverer.end();
  return worst;
}

int run(double seconds) {
  const auto count = static_cast<std::uint64_t>(2000 * seconds);
  through_lanes(200);  // warm
  const Rate ours = through_lanes(count);
  const Rate floor = bare_curl(count);
  double burst = 0;
  through_lanes(5000, &burst);
  const double hanging = beside_hanging_ms();
  using bench::figure;
  using bench::judged;
  figure("bare curl, 4 threads, kept connections", floor.per_second, "webhooks/s");
  judged("through lanes and pool", ours.per_second, "webhooks/s", 2500, true);
  figure("  ratio to bare curl", ours.per_second / floor.per_second, "");
  figure("bare curl, CPU each", floor.cpu_us, "us");
  judged("through lanes and pool, CPU each", ours.cpu_us, "us", 490, false);
  figure("  ratio to bare curl", ours.cpu_us / floor.cpu_us, "");
  judged("5000 groups due at once", burst, "s", 2, false);
  judged("one message beside 20 integrations that hang, worst", hanging, "ms", 100, false);
  const bool met = ours.per_second >= 2500 && ours.cpu_us <= 490 && burst <= 2 && hanging <= 100;
  return met ? 0 : 1;
}

}  // namespace
}  // namespace tocsin::actions

int main(int argc, char** argv) {
  curl_global_init(CURL_GLOBAL_DEFAULT);
  return tocsin::actions::run(argc > 1 ? std::atof(argv[1]) : 10);
}
