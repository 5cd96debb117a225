#include "app/logging.h"

#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

#include <map>
#include <mutex>

namespace tocsin::app {
namespace {

constexpr int kBurst = 10;
constexpr core::Duration kBurstWindow = std::chrono::seconds(10);

std::string_view level_name(core::Level level) {
  switch (level) {
    case core::Level::debug:
      return "debug";
    case core::Level::info:
      return "info";
    case core::Level::warn:
      return "warn";
    case core::Level::error:
      return "error";
  }
  return "info";
}

bool needs_quotes(const std::string& text) {
  return text.empty() || text.find_first_of(" =\"\t\n\\") != std::string::npos;
}

// Lists and maps stay JSON; a plain text loses its quotes where logfmt allows it.
std::string logfmt_value(const core::Value& value) {
  const auto* text = std::get_if<std::string>(&value.storage());
  if (text != nullptr && !needs_quotes(*text)) return *text;
  return core::to_json(value);
}

class StderrLog final : public core::Log {
 public:
  StderrLog(core::Level least, bool json, const core::Clock& clock)
      : least_(least),
        json_(json),
        clock_(clock),
        logger_("tocsin", std::make_shared<spdlog::sinks::stderr_sink_mt>()) {
    logger_.set_pattern("%v");
    logger_.set_level(spdlog::level::trace);
    logger_.flush_on(spdlog::level::trace);
  }

  void write(core::Level level, std::string_view event,
             std::initializer_list<core::Field> fields) override {
    if (level < least_) return;
    std::uint64_t suppressed = 0;
    if (level >= core::Level::warn && !admit(event, suppressed)) return;
    core::ValueMap line{{"ts", core::to_rfc3339(clock_.now())},
                        {"level", std::string(level_name(level))},
                        {"msg", std::string(event)}};
    for (const auto& [name, value] : fields) line.emplace_back(std::string(name), value);
    if (suppressed > 0) line.emplace_back("suppressed", suppressed);
    logger_.log(spdlog::level::info, spdlog::string_view_t(render(line)));
  }

 private:
  struct Rate {
    core::Duration since{};
    int seen = 0;
    std::uint64_t suppressed = 0;
  };

  bool admit(std::string_view event, std::uint64_t& suppressed) {
    const std::lock_guard lock(mutex_);
    Rate& rate = rates_[std::string(event)];
    const core::Duration now = clock_.monotonic();
    if (now - rate.since > kBurstWindow) {
      rate.since = now;
      rate.seen = 0;
    }
    if (++rate.seen > kBurst) {
      ++rate.suppressed;
      return false;
    }
    suppressed = std::exchange(rate.suppressed, 0);
    return true;
  }

  std::string render(const core::ValueMap& line) const {
    if (json_) return core::to_json(line);
    std::string out;
    for (const auto& [name, value] : line) {
      if (!out.empty()) out += ' ';
      out += name + "=" + logfmt_value(value);
    }
    return out;
  }

  core::Level least_;
  bool json_;
  const core::Clock& clock_;
  spdlog::logger logger_;
  std::mutex mutex_;  // guards rates_
  std::map<std::string, Rate> rates_;
};

}  // namespace

void read(config::Reader& in, LogConfig& out) {
  in.optional("level", out.level, config::one_of({"debug", "info", "warn", "error"}),
              "least level written");
  in.optional("format", out.format, config::one_of({"logfmt", "json"}),
              "one event per line, as logfmt or JSON");
}

std::unique_ptr<core::Log> make_log(const LogConfig& config, const core::Clock& clock) {
  core::Level least = core::Level::info;
  for (const core::Level level :
       {core::Level::debug, core::Level::info, core::Level::warn, core::Level::error}) {
    if (config.level == level_name(level)) least = level;
  }
  return std::make_unique<StderrLog>(least, config.format == "json", clock);
}

}  // namespace tocsin::app
