#include "app/app.h"

#include <pthread.h>

#include <algorithm>
#include <atomic>
#include <functional>
#include <memory>
#include <thread>

#include "app/api/api.h"
#include "app/config/insecure_settings.h"
#include "app/health/health_watch.h"
#include "app/process/sd_notify.h"
#include "app/roles.h"
#include "app/serve/http_routes.h"
#include "app/serve/http_server.h"
#include "app/serve/metrics.h"
#include "app/serve/process_metrics.h"
#include "app/serve/request_counts.h"
#include "core/mutex.h"

namespace tocsin::app {
namespace {

using namespace std::chrono_literals;

}  // namespace

struct App::Impl {
  Impl(AppConfig c, AppOptions o, core::Clock& k, core::Log& l)
      : config(std::move(c)), options(std::move(o)), clock(k), log(l) {}

  core::Status open(const OpenTransport& open_transport, std::chrono::milliseconds patience);
  core::Status reach(std::chrono::milliseconds patience);
  core::Status serve();
  std::vector<HttpRoute> own_routes();
  void start_threads();
  void keep(const std::stop_token& stop);
  void keep_small(core::Duration steady);
  void watch_health();
  [[nodiscard]] std::string role() const;
  [[nodiscard]] std::string why_not_ready() const;
  void spawn(const std::string& name, std::function<void(std::stop_token)> body);
  /// False: a thread goes on after `end` (steady).
  bool all_end_by(core::Duration end);
  bool stop();
  [[nodiscard]] bool ready() const;

  AppConfig config;
  AppOptions options;
  core::Clock& clock;
  core::Log& log;
  PrometheusTelemetry telemetry;
  std::unique_ptr<ingest::Transport> transport;
  RoleParts parts;
  std::vector<RunningStage> stages;
  std::unique_ptr<HealthWatch> health;
  std::atomic<bool> opened{false};   // all stages are there: before it nothing is ready
  core::Duration retention_told{};   // steady; that it fails
  std::unique_ptr<Api> api;          // null: this process does not route
  std::unique_ptr<HttpServer> http;  // behind what its routes use
  std::string no_address;

  core::Mutex mutex;
  core::CondVar ended;
  int running GUARDED_BY(mutex) = 0;
  bool stopped = false;
  std::vector<std::jthread> threads;  // in the order they were started; ended in the same order
};

core::Status App::Impl::open(const OpenTransport& open_transport,
                             std::chrono::milliseconds patience) {
  count_insecure_settings(config, telemetry);
  auto reached = open_transport(telemetry);
  if (!reached) return reached.error();
  transport = std::move(*reached);
  if (const auto status = serve(); !status) return status;
  if (const auto status = reach(patience); !status) return status;
  LoopPorts ports;
  ports.transport = transport.get();
  ports.clock = &clock;
  ports.log = &log;
  ports.telemetry = &telemetry;
  ports.committer = thread_committer();
  auto made = make_stages(config, options, ports, parts);
  if (!made) return made.error();
  stages = std::move(*made);
  watch_health();
  opened = true;
  return core::ok();
}

// A broker that is down at start is waited for: health says "not ready" meanwhile.
core::Status App::Impl::reach(std::chrono::milliseconds patience) {
  const core::Duration end = clock.monotonic() + patience;
  while (true) {
    auto status = transport->ping(2s);
    if (status) status = transport->ensure_topics();
    if (status || !status.error().retryable() || clock.monotonic() >= end) return status;
    log.warn("transport_unreachable",
             {{"transport", transport->describe()}, {"error", status.error().message}});
    std::this_thread::sleep_for(500ms);
  }
}

std::vector<HttpRoute> App::Impl::own_routes() {
  constexpr const char* kMetrics = "text/plain; version=0.0.4; charset=utf-8";
  constexpr const char* kText = "text/plain; charset=utf-8";
  const auto metrics = [this](const HttpRequest&) -> HttpAnswer {
    return {200, telemetry.render() + process_metrics()};
  };
  const auto issues = [this](const HttpRequest&) -> HttpAnswer {
    return {200, parts.issue_metrics.render(clock.now()) + parts.scalars.scraped_text(clock.now())};
  };
  const auto healthy = [](const HttpRequest&) -> HttpAnswer { return {200, "healthy\n"}; };
  const auto readiness = [this](const HttpRequest&) -> HttpAnswer {
    if (ready()) return {200, "ready\n"};
    return {503, "not ready: " + why_not_ready()};
  };
  return {
      {"GET", "/metrics", kMetrics, metrics},     {"GET", "/metrics/issues", kMetrics, issues},
      {"GET", "/-/healthy", kText, healthy},      {"GET", "/-/ready", kText, readiness},
      {"GET", "/healthz", kText, healthy, false}, {"GET", "/readyz", kText, readiness, false},
  };
}

core::Status App::Impl::serve() {
  auto table = own_routes();
  if (options.roles.route) {
    auto made = Api::create(config, *transport, clock, log, options.host, telemetry);
    if (!made) return made.error().in("http");
    api = std::move(*made);
    for (HttpRoute& route : api->routes()) table.push_back(std::move(route));
    for (HttpRoute& route : api->pages()) table.push_back(std::move(route));
  }
  count_requests(table, telemetry);
  auto server = HttpServer::start(config.http, HttpRoutes(std::move(table)), log);
  if (!server) return server.error();
  http = std::move(*server);
  return core::ok();
}

std::string App::Impl::why_not_ready() const {
  if (!opened) return "the transport does not answer yet\n";
  const std::string why = health->blocking();
  return why.empty() ? "restoring state\n" : why;
}

std::string App::Impl::role() const {
  const Roles& roles = options.roles;
  if (roles.collect && roles.evaluate && roles.route) return "up";
  std::string out;
  for (const auto& [has, name] : {std::pair{roles.collect, "collect"},
                                  {roles.evaluate, "evaluate"},
                                  {roles.route, "route"},
                                  {roles.hosted && !roles.evaluate, "rule-worker"}}) {
    if (has) out += (out.empty() ? "" : ",") + std::string(name);
  }
  return out;
}

void App::Impl::watch_health() {
  HealthPorts ports{transport.get(), &clock, &log, &telemetry, [this] {
                      std::vector<Trouble> out;
                      for (const RunningStage& one : stages) {
                        std::string why = one.loop->ready() ? "" : one.loop->trouble();
                        if (why.empty()) continue;
                        out.push_back({ProcessIssue::stage_stands_still, one.stage->wiring().name,
                                       std::move(why)});
                      }
                      return out;
                    }};
  health = std::make_unique<HealthWatch>(std::move(ports),
                                         ProcessTrouble(config.cluster, options.host, role()));
}

void App::Impl::spawn(const std::string& name, std::function<void(std::stop_token)> body) {
  {
    const core::MutexLock lock(mutex);
    ++running;
  }
  threads.emplace_back([this, name, body = std::move(body)](const std::stop_token& stop) {
    pthread_setname_np(pthread_self(), ("tocsin-" + name).substr(0, 15).c_str());
    body(stop);
    const core::MutexLock lock(mutex);
    --running;
    ended.notify_all();
  });
}

void App::Impl::start_threads() {
  if (parts.leadership) {
    spawn("lease", [this](const std::stop_token& stop) {
      parts.leadership->run(stop, [this] {
        for (const RunningStage& one : stages) one.loop->wake();
      });
    });
  }
  for (auto& one : stages) {
    spawn(one.thread, [loop = one.loop.get()](const std::stop_token& stop) { loop->run(stop); });
  }
  spawn("keeper", [this](const std::stop_token& stop) { keep(stop); });
}

// Tells systemd when everything is ready, and has the journal kept small.
void App::Impl::keep(const std::stop_token& stop) {
  core::Mutex quiet;
  core::StoppableCondVar wake;
  bool told = false;
  core::Duration look_due{};
  // A start has the processors and the disk to itself, unless it takes long.
  const core::Duration small_from = clock.monotonic() + 30s;
  while (!stop.stop_requested()) {
    if (!told && ready()) {
      told = true;
      sd_notify(options.notify_socket, "READY=1\nSTATUS=serving");
      log.info("ready", {{"transport", transport->describe()}, {"http", http->address()}});
    }
    const core::Duration steady = clock.monotonic();
    if (told || steady >= small_from) keep_small(steady);
    // Until it is ready it looks a hundred times a second, to be it at once.
    if (told || steady >= look_due) {
      health->look();
      look_due = steady + 1s;
    }
    const core::MutexLock lock(quiet);
    wake.wait_for(quiet, stop, told ? 1000ms : 10ms, [] { return false; });
  }
}

void App::Impl::keep_small(core::Duration steady) {
  const auto status = transport->apply_retention(clock.now());
  if (status || (retention_told.count() != 0 && steady - retention_told < 1min)) return;
  retention_told = steady;
  log.warn("retention_failed", {{"error", status.error().message}});
}

bool App::Impl::ready() const {
  return opened && health->blocking().empty() &&
         std::all_of(stages.begin(), stages.end(),
                     [](const RunningStage& one) { return one.loop->ready(); });
}

bool App::Impl::all_end_by(core::Duration end) {
  const core::MutexLock lock(mutex);
  return ended.wait_for(mutex, std::max<core::Duration>(end - clock.monotonic(), 0ns),
                        [this]() REQUIRES(mutex) { return running == 0; });
}

bool App::Impl::stop() {
  if (stopped) return true;
  stopped = true;
  sd_notify(options.notify_socket, "STOPPING=1");
  const core::Duration end = clock.monotonic() + options.stop_deadline;
  for (auto& thread : threads) thread.request_stop();
  const bool in_time = all_end_by(end);
  if (in_time) threads.clear();
  return in_time;
}

core::Result<std::unique_ptr<App>> App::start(AppConfig config, AppOptions options,
                                              const OpenTransport& open_transport,
                                              core::Clock& clock, core::Log& log,
                                              std::chrono::milliseconds patience) {
  auto impl = std::make_unique<Impl>(std::move(config), std::move(options), clock, log);
  if (const auto status = impl->open(open_transport, patience); !status) return status.error();
  impl->start_threads();
  return std::unique_ptr<App>(new App(std::move(impl)));
}

App::App(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
App::~App() {
  if (!impl_->stop()) {
    // A thread hangs in a library call. Destroying what it uses would be worse than leaving it.
    (void)impl_.release();
  }
}
bool App::stop() { return impl_->stop(); }
bool App::ready() const { return impl_->ready(); }
void App::reload(const rules::RulesConfig& rules) {
  const rules::RulesConfig ours = engine_rules(rules, impl_->config.rules);
  for (EvaluateStage* engine : impl_->parts.engines) engine->reload(ours);
  for (auto& one : impl_->stages) one.loop->wake();  // idle ones too
}
core::Telemetry& App::telemetry() { return impl_->telemetry; }
const std::string& App::address() const {
  return impl_->http ? impl_->http->address() : impl_->no_address;
}

}  // namespace tocsin::app
