#include "app/cli/looking.h"

#include <csignal>
#include <filesystem>
#include <iostream>

#include "app/config/transport_settings.h"
#include "app/process/exit_code.h"

namespace tocsin::app {
namespace {

volatile std::sig_atomic_t end_requested = 0;  // set by the signal handler alone

}  // namespace

int refuse(const core::Error& error) {
  std::cerr << "tocsin: " << error.message << "\n";
  return exit_code(error);
}

core::Status Looking::open(const std::string& config_file, const std::string& out) {
  const auto settings = transport_settings(config_file, out);
  if (!settings) return settings.error();
  cluster_ = settings->cluster;
  evidence_dir_ = settings->evidence_dir;
  prefix_ = settings->topics.prefix;
  where_ = settings->transport;
  topics_ = settings->topics;
  if (settings->transport.kafka.is_null()) journal_ = settings->transport.journal;
  const ingest::TransportConfig& cfg = settings->transport;
  std::error_code error;
  const auto has = [&](const char* name) {
    return std::filesystem::exists(std::filesystem::path(cfg.journal) / name, error);
  };
  if (cfg.kafka.is_null() && !has("control.db") && !has("telemetry.db")) {
    return core::unavailable("there is no journal " + cfg.journal +
                             ": nothing has written to it yet");
  }
  auto opened = ingest::Transport::open(cfg, settings->topics, log_, telemetry_);
  if (!opened) return opened.error();
  transport_ = std::move(*opened);
  return core::ok();
}

core::Result<std::vector<core::Position>> Looking::positions_of(
    const std::string& group, const std::vector<std::string>& names) const {
  return ingest::group_positions(where_, topics_, group, names);
}

void follow_until_signalled() {
  end_requested = 0;
  std::signal(SIGINT, [](int) { end_requested = 1; });
  std::signal(SIGTERM, [](int) { end_requested = 1; });
}

bool goes_on() { return end_requested == 0 && std::cout.good(); }

}  // namespace tocsin::app
