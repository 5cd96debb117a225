// One span of a trace, as OpenTelemetry means it. Internal to actions.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "core/time.h"

namespace tocsin::actions {

/// Numbers of OTLP's SpanKind.
enum class SpanKind { internal = 1, client = 3, producer = 4 };

using SpanValue = std::variant<std::string, std::int64_t, bool>;

/// Another span that led to this one, of whatever trace.
struct SpanLink {
  std::string trace;  // 32 hex digits
  std::string span;   // 16 hex digits
};

struct Span {
  std::string trace;   // 32 hex digits
  std::string id;      // 16 hex digits
  std::string parent;  // 16 hex digits; empty: it begins its trace
  std::string state;   // `tracestate`, as it came
  std::string name;
  SpanKind kind = SpanKind::internal;
  core::WallTime start{};
  core::WallTime end{};  // not before `start`
  std::vector<std::pair<std::string, SpanValue>> attributes;
  std::vector<SpanLink> links;
  std::string error;  // in words; empty: it went well
};

}  // namespace tocsin::actions
