// Port: structured log events. `event` is snake_case and past tense; fields come from one list.
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>

#include "core/value.h"

namespace tocsin::core {

enum class Level { debug, info, warn, error };

using Field = std::pair<std::string_view, Value>;

/// Thread-safe. Never one line per record: count instead (core/telemetry.h).
class Log {
 public:
  virtual ~Log() = default;
  virtual void write(Level level, std::string_view event, std::initializer_list<Field> fields) = 0;

  void debug(std::string_view event, std::initializer_list<Field> fields = {}) {
    write(Level::debug, event, fields);
  }
  void info(std::string_view event, std::initializer_list<Field> fields = {}) {
    write(Level::info, event, fields);
  }
  void warn(std::string_view event, std::initializer_list<Field> fields = {}) {
    write(Level::warn, event, fields);
  }
  void error(std::string_view event, std::initializer_list<Field> fields = {}) {
    write(Level::error, event, fields);
  }
};

/// Says nothing.
class NullLog final : public Log {
 public:
  void write(Level, std::string_view, std::initializer_list<Field>) override {}
};

}  // namespace tocsin::core
