#include "app/app.h"

#include <pthread.h>

#include <atomic>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>

#include "app/collect_role.h"
#include "app/deliver_role.h"
#include "app/engine_role.h"
#include "app/instance_slot.h"
#include "app/metrics.h"
#include "app/router_role.h"
#include "app/sd_notify.h"

namespace tocsin::app {
namespace {

using namespace std::chrono_literals;

// Kafka allows many engine threads (one group member each); the journal has one writer `engine`.
std::size_t engine_threads(const AppConfig& config, bool kafka) {
  if (!kafka) return 1;
  if (config.engine.threads > 0) return config.engine.threads;
  const std::size_t cores = std::max(1U, std::thread::hardware_concurrency());
  return cores > 2 ? cores - 1 : 1;
}

// Without a tree, rules with `actions:` still have routes of their own.
bool routes_anything(const AppConfig& config) {
  return config.has_route || !rule_actions(config.rules).empty();
}

}  // namespace

struct App::Impl {
  Impl(AppConfig c, AppOptions o, core::Clock& k, core::Log& l)
      : config(std::move(c)), options(std::move(o)), clock(k), log(l) {}

  core::Status open(std::chrono::milliseconds patience);
  core::Status reach(std::chrono::milliseconds patience);
  core::Status build_actions();
  core::Status open_roles();
  core::Status serve();
  HttpResponse answer(std::string_view path);
  void start_threads();
  void spawn(const std::string& name, std::function<void(std::stop_token)> body);
  bool stop();
  [[nodiscard]] bool ready() const;

  AppConfig config;
  AppOptions options;
  core::Clock& clock;
  core::Log& log;
  PrometheusTelemetry telemetry;
  actions::IssueMetrics issue_metrics;
  std::unique_ptr<ingest::Transport> transport;
  std::mutex command_mutex;  // guards command_publisher: deliveries run on several threads
  std::unique_ptr<core::RecordPublisher> command_publisher;
  Actions actions;
  std::vector<InstanceSlot> slots;  // one per engine: its part of the transactional id
  std::vector<std::unique_ptr<EngineRole>> engines;
  std::unique_ptr<RouterRole> router;
  std::unique_ptr<DeliverRole> deliver;
  std::unique_ptr<CollectRole> collect;
  std::unique_ptr<StopRole> stops;
  std::unique_ptr<HttpServer> http;
  std::string no_address;

  std::mutex mutex;  // guards running
  std::condition_variable ended;
  int running = 0;
  bool stopped = false;
  std::vector<std::jthread> threads;  // in the order they were started; ended in the same order
};

core::Status App::Impl::open(std::chrono::milliseconds patience) {
  auto opened = ingest::Transport::open(config.transport, config.topics, log, telemetry);
  if (!opened) return opened.error();
  transport = std::move(*opened);
  if (const auto status = serve(); !status) return status;
  if (const auto status = reach(patience); !status) return status;
  if (options.roles.route) {
    if (const auto status = build_actions(); !status) return status;
  }
  return open_roles();
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

core::Status App::Impl::build_actions() {
  ingest::PublisherOptions publisher;
  publisher.writer = "actions";
  publisher.durable = true;
  auto made = transport->publisher(publisher);
  if (!made) return made.error();
  command_publisher = std::move(*made);
  const auto publish = [this](const core::OutRecord& record) -> core::Status {
    const std::lock_guard lock(command_mutex);
    if (const auto status = command_publisher->publish(record); !status) return status;
    return command_publisher->flush(5s);
  };
  actions::Environment environment;
  environment.clock = &clock;
  environment.log = &log;
  environment.telemetry = &telemetry;
  environment.cluster = config.cluster;
  environment.external_url = config.external_url;
  environment.host = options.host;
  environment.issue_metrics = &issue_metrics;
  environment.publish = publish;
  environment.send_command = [publish, source = "/" + config.cluster +
                                                "/router"](const core::Command& command) {
    return publish(ingest::encode_command(command, source));
  };
  for (const auto& integration : config.receivers.integrations) {
    auto action = integration.build(environment);
    if (!action) return action.error().in(integration.receiver + "." + integration.type);
    actions.emplace(integration.common.id, std::move(*action));
  }
  return core::ok();
}

core::Status App::Impl::open_roles() {
  const std::string& prefix = config.topics.prefix;
  if (options.roles.evaluate) {
    for (std::size_t i = 0; i < engine_threads(config, transport->is_kafka()); ++i) {
      auto slot = InstanceSlot::acquire(prefix + "/rules");
      if (!slot) return slot.error().in("evaluate");
      EngineRoleOptions role{config.rules,   config.engine,
                             config.cluster, config.labels,
                             prefix,         options.host + "-" + std::to_string(slot->number())};
      slots.push_back(std::move(*slot));
      engines.push_back(
          std::make_unique<EngineRole>(*transport, std::move(role), clock, log, telemetry));
      if (const auto status = engines.back()->open(); !status) return status.error().in("evaluate");
    }
  }
  if (options.roles.route && routes_anything(config)) {
    RouterRoleOptions role{config.route,
                           rule_actions(config.rules),
                           routing_integrations(config.receivers),
                           config.router,
                           config.version,
                           config.cluster,
                           prefix};
    router = std::make_unique<RouterRole>(*transport, std::move(role), actions, issue_metrics,
                                          clock, log, telemetry);
    if (const auto status = router->open(); !status) return status.error().in("route");
    DeliverRoleOptions delivery{actions::lane_options(config.receivers, config.cluster),
                                config.cluster, prefix};
    deliver = std::make_unique<DeliverRole>(*transport, std::move(delivery), actions, issue_metrics,
                                            clock, log, telemetry);
    if (const auto status = deliver->open(); !status) return status.error().in("deliver");
  }
  if (options.roles.collect) {
    collect = std::make_unique<CollectRole>(
        *transport, CollectRoleOptions{config.collect, options.host, prefix}, clock, log,
        telemetry);
    if (const auto status = collect->open(); !status) return status.error().in("collect");
    stops = std::make_unique<StopRole>(*transport, options.host, clock, log, telemetry);
    if (const auto status = stops->open(); !status) return status.error().in("stop agent");
  }
  return core::ok();
}

HttpResponse App::Impl::answer(std::string_view path) {
  constexpr const char* kMetrics = "text/plain; version=0.0.4; charset=utf-8";
  if (path == "/metrics") return {200, kMetrics, telemetry.render()};
  if (path == "/metrics/issues") return {200, kMetrics, issue_metrics.render(clock.now())};
  if (path == "/-/healthy" || path == "/healthz")
    return {200, "text/plain; charset=utf-8", "healthy\n"};
  if (path == "/-/ready" || path == "/readyz") {
    if (ready()) return {200, "text/plain; charset=utf-8", "ready\n"};
    return {503, "text/plain; charset=utf-8",
            "not ready: restoring state, or the transport does not answer\n"};
  }
  return {404, "text/plain; charset=utf-8",
          "not found; served here: /metrics /metrics/issues /-/healthy /-/ready\n"};
}

core::Status App::Impl::serve() {
  auto server = HttpServer::start(
      config.http, [this](std::string_view path) { return answer(path); }, log);
  if (!server) return server.error();
  http = std::move(*server);
  return core::ok();
}

void App::Impl::spawn(const std::string& name, std::function<void(std::stop_token)> body) {
  {
    const std::lock_guard lock(mutex);
    ++running;
  }
  threads.emplace_back([this, name, body = std::move(body)](const std::stop_token& stop) {
    pthread_setname_np(pthread_self(), ("tocsin-" + name).substr(0, 15).c_str());
    body(stop);
    const std::lock_guard lock(mutex);
    --running;
    ended.notify_all();
  });
}

void App::Impl::start_threads() {
  if (collect) spawn("collect", [this](const std::stop_token& stop) { collect->run(stop); });
  for (auto& engine : engines) {
    spawn("engine", [role = engine.get()](const std::stop_token& stop) { role->run(stop); });
  }
  if (router) spawn("router", [this](const std::stop_token& stop) { router->run(stop); });
  if (deliver) spawn("deliver", [this](const std::stop_token& stop) { deliver->run(stop); });
  if (stops) spawn("stops", [this](const std::stop_token& stop) { stops->run(stop); });
  spawn("keeper", [this](const std::stop_token& stop) {
    std::mutex quiet;
    std::condition_variable_any wake;
    bool told = false;
    core::Duration retention{};
    while (!stop.stop_requested()) {
      if (!told && ready()) {
        told = true;
        sd_notify(options.notify_socket, "READY=1\nSTATUS=serving");
        log.info("ready", {{"transport", transport->describe()}, {"http", http->address()}});
      }
      if (clock.monotonic() - retention > 1min) {
        retention = clock.monotonic();
        if (const auto status = transport->apply_retention(clock.now()); !status) {
          log.warn("retention_failed", {{"error", status.error().message}});
        }
      }
      std::unique_lock lock(quiet);
      wake.wait_for(lock, stop, told ? 1000ms : 10ms, [] { return false; });
    }
  });
}

bool App::Impl::ready() const {
  for (const auto& engine : engines) {
    if (!engine->ready()) return false;
  }
  return (!router || router->ready()) && (!deliver || deliver->ready()) &&
         (!collect || collect->ready());
}

bool App::Impl::stop() {
  if (stopped) return true;
  stopped = true;
  sd_notify(options.notify_socket, "STOPPING=1");
  const core::Duration end = clock.monotonic() + options.stop_deadline;
  for (auto& thread : threads) thread.request_stop();
  std::unique_lock lock(mutex);
  const bool in_time = ended.wait_for(lock, std::max<core::Duration>(end - clock.monotonic(), 0ns),
                                      [this] { return running == 0; });
  lock.unlock();
  if (in_time) threads.clear();
  return in_time;
}

core::Result<std::unique_ptr<App>> App::start(AppConfig config, AppOptions options,
                                              core::Clock& clock, core::Log& log,
                                              std::chrono::milliseconds patience) {
  auto impl = std::make_unique<Impl>(std::move(config), std::move(options), clock, log);
  if (const auto status = impl->open(patience); !status) return status.error();
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
const std::string& App::address() const {
  return impl_->http ? impl_->http->address() : impl_->no_address;
}

}  // namespace tocsin::app
