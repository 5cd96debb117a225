// The API over a journal, without sockets: asked as its routes are.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "app/api/api.h"
#include "core/system_clock.h"

namespace tocsin::app {

using Json = nlohmann::json;

inline constexpr const char* kApiConfig = R"(
http:
  auth:
    tokens:
      - {name: shift, role: operator, token: "${SHIFT}"}
      - {name: guard, role: stopper, token: "${GUARD}"}
      - {name: grafana, role: viewer, token: "${GRAFANA}"}
route:
  receiver: all
  group_by: [job]
  routes:
    - {matchers: ['team="vision"'], receiver: vision}
receivers:
  all: {publish_metric: {}}
  vision: {publish_metric: {id: v}}
)";

struct Told {
  int status = 0;
  Json json;
  std::string text;
  HttpHeaders headers;
  std::shared_ptr<HttpStream> stream;

  [[nodiscard]] std::string header(const std::string& name) const {
    for (const auto& [one, value] : headers) {
      if (one == name) return value;
    }
    return "";
  }
};

class ApiTest : public ::testing::Test {
 protected:
  [[nodiscard]] virtual const char* config_text() const { return kApiConfig; }

  void SetUp() override {
    const std::string path = (folder_ / "t.yaml").string();
    std::ofstream(path) << "transport: {journal: " << (folder_ / "journal").string() << "}\n"
                        << config_text();
    config::Diagnostics diagnostics;
    config_ = load_config(
        path,
        [](const std::string& name) -> std::optional<std::string> {
          if (name == "SHIFT") return "0123456789-the-shift";
          if (name == "GUARD") return "0123456789-the-guard";
          if (name == "GRAFANA") return "0123456789-grafana";
          return std::nullopt;
        },
        diagnostics);
    ASSERT_FALSE(diagnostics.has_errors()) << config::to_text(diagnostics.items().front());
    auto opened = ingest::Transport::open(config_.transport, config_.topics, log_, telemetry_);
    ASSERT_TRUE(opened) << opened.error().message;
    transport_ = std::move(*opened);
    ASSERT_TRUE(transport_->ensure_topics());
    auto made = Api::create(config_, *transport_, clock_, log_, "node-7", telemetry_);
    ASSERT_TRUE(made) << made.error().message;
    api_ = std::move(*made);
    routes_ = std::make_unique<HttpRoutes>(api_->routes());
  }
  ~ApiTest() override {
    routes_.reset();
    api_.reset();
    transport_.reset();
    std::filesystem::remove_all(folder_);
  }

  Told ask(std::string_view method, std::string_view path, std::string_view query = "",
           const std::string& body = "", std::string_view token = "0123456789-the-shift",
           std::string_view type = "application/json",
           const std::vector<std::pair<std::string, std::string>>& further = {}) {
    HttpRequest request{method, path, query, body, "127.0.0.1"};
    const std::string bearer = "Bearer " + std::string(token);
    request.headers = {{"Host", "localhost:9760"}, {"Content-Type", type}};
    if (!token.empty()) request.headers.emplace_back("Authorization", bearer);
    for (const auto& [name, value] : further) request.headers.emplace_back(name, value);
    HttpResponse made = routes_->answer(request);
    return {made.status, Json::parse(made.body, nullptr, false), made.body, std::move(made.headers),
            std::move(made.stream)};
  }
  // An alert is read back from the topic, which takes a moment.
  Json alerts(std::size_t wanted, std::string_view query = "") {
    Json out;
    for (int i = 0; i < 500; ++i) {
      out = ask("GET", "/api/v2/alerts", query).json;
      if (out.is_array() && out.size() == wanted) break;
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    return out;
  }
  static Json silence(const std::string& name, const std::string& value) {
    const core::WallTime now = core::SystemClock().now();
    return {
        {"matchers", {{{"name", name}, {"value", value}, {"isRegex", false}, {"isEqual", true}}}},
        {"startsAt", core::to_rfc3339(now)},
        {"endsAt", core::to_rfc3339(now + std::chrono::hours(2))},
        {"createdBy", "ada"},
        {"comment", "a known one"}};
  }

  const std::filesystem::path folder_ = [] {
    std::string name = (std::filesystem::temp_directory_path() / "tocsin-api-XXXXXX").string();
    return std::filesystem::path(mkdtemp(name.data()));
  }();
  core::NullLog log_;
  core::NullTelemetry telemetry_;
  core::SystemClock clock_;
  AppConfig config_;
  std::unique_ptr<ingest::Transport> transport_;
  std::unique_ptr<Api> api_;
  std::unique_ptr<HttpRoutes> routes_;
};

}  // namespace tocsin::app
