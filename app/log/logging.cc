#include "app/log/logging.h"

#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <map>

#include "app/log/log_console.h"
#include "core/mutex.h"

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

enum class Format { console, logfmt, json };

Format format_of(const std::string& name) {
  if (name == "json") return Format::json;
  if (name == "console") return Format::console;
  if (name == "logfmt") return Format::logfmt;
  return isatty(STDERR_FILENO) == 1 ? Format::console : Format::logfmt;
}

bool needs_quotes(const std::string& text) {
  return text.empty() || text.find_first_of(" =\"\t\n\\") != std::string::npos;
}

// Lists and maps stay JSON; a plain text loses its quotes where logfmt allows it.
std::string logfmt_value(const core::Value& value) {
  const auto* text = core::as<std::string>(value);
  if (text != nullptr && !needs_quotes(*text)) return *text;
  return core::to_json(value);
}

class StderrLog final : public core::Log {
 public:
  StderrLog(core::Level least, Format format, const core::Clock& clock)
      : least_(least),
        format_(format),
        colour_(shows_colour(STDERR_FILENO)),
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
    const core::WallTime now = clock_.now();
    core::ValueMap line;
    if (format_ != Format::console) {
      line = {{"ts", core::to_rfc3339(now)},
              {"level", std::string(level_name(level))},
              {"msg", std::string(event)}};
    }
    for (const auto& [name, value] : fields) line.emplace_back(std::string(name), value);
    if (suppressed > 0) line.emplace_back("suppressed", suppressed);
    const std::string text =
        format_ == Format::console ? console_line(level, event, line, now, colour_) : render(line);
    logger_.log(spdlog::level::info, spdlog::string_view_t(text));
  }

 private:
  struct Rate {
    core::Duration since{};
    int seen = 0;
    std::uint64_t suppressed = 0;
  };

  bool admit(std::string_view event, std::uint64_t& suppressed) {
    const core::MutexLock lock(mutex_);
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

  // One bad step fires many issues of one rule: its advice stands with the first.
  void say_advice_once(core::ValueMap& line) {
    for (auto& [name, value] : line) {
      const auto* advice = core::as<std::string>(value);
      if (name != "advice" || advice == nullptr || advice->empty()) continue;
      const core::MutexLock lock(mutex_);
      if (*advice == advice_) {
        value = core::Value();
      } else {
        advice_ = *advice;
      }
    }
  }

  std::string render(const core::ValueMap& line) const {
    if (format_ == Format::json) return core::to_json(line);
    std::string out;
    for (const auto& [name, value] : line) {
      if (!out.empty()) out += ' ';
      out += name + "=" + logfmt_value(value);
    }
    return out;
  }

  core::Level least_;
  Format format_;
  bool colour_;
  const core::Clock& clock_;
  spdlog::logger logger_;
  core::Mutex mutex_;
  std::map<std::string, Rate> rates_ GUARDED_BY(mutex_);
  std::string advice_ GUARDED_BY(mutex_);  // said last
};

}  // namespace

void read(config::Reader& in, LogConfig& out) {
  in.optional("level", out.level, config::one_of({"debug", "info", "warn", "error"}),
              "lowest level that is written");
  in.optional("format", out.format, config::one_of({"auto", "console", "logfmt", "json"}),
              "one event per line: sentences (console), logfmt or JSON; auto: console on a "
              "terminal, else logfmt");
}

std::unique_ptr<core::Log> make_log(const LogConfig& config, const core::Clock& clock) {
  core::Level least = core::Level::info;
  for (const core::Level level :
       {core::Level::debug, core::Level::info, core::Level::warn, core::Level::error}) {
    if (config.level == level_name(level)) least = level;
  }
  return std::make_unique<StderrLog>(least, format_of(config.format), clock);
}

}  // namespace tocsin::app
