// Spans to an OpenTelemetry collector: the section `tracing`.
//
// Sends       POST /v1/traces, JSON, gzip.
// Retries     429, 502, 503, 504 and lost connections: the caller sends the same spans again.
// Idempotent  a span that comes twice has the same identifiers.
// Needs       an OpenTelemetry collector, or a far side that takes OTLP.
// Source      OpenTelemetry protocol 1.x (OTLP/HTTP); its trace data model.
#pragma once

#include <chrono>
#include <memory>
#include <span>
#include <string>

#include "actions/spans/span.h"
#include "config/config.h"
#include "core/clock.h"
#include "core/notification.h"

namespace tocsin::actions {

class HttpClient;

/// The checked configuration; immutable once it is read.
struct TracingConfig;
std::shared_ptr<const TracingConfig> no_tracing();
/// Reads the section. Never null.
std::shared_ptr<const TracingConfig> read_tracing(config::Reader& in);
bool asked_for(const TracingConfig& config);

/// What came of an export.
enum class SpansTaken {
  all,
  later,   // the far side cannot be reached, or is busy
  refused  // these spans will never be taken
};
struct SpanAnswer {
  SpansTaken taken = SpansTaken::all;
  std::string words;  // what was not taken, or why; without a credential
};

/// Thread-safe.
class SpanExporter {
 public:
  virtual ~SpanExporter() = default;
  /// Blocks at most the configured timeout.
  virtual SpanAnswer send(std::span<const Span> spans) = 0;
};
/// `cluster`: the attribute service.namespace. `http`: null for the real client. `clock` outlives it.
std::unique_ptr<SpanExporter> make_span_exporter(std::shared_ptr<const TracingConfig> config,
                                                 const std::string& cluster, core::Clock& clock,
                                                 HttpClient* http);

/// ExportTraceServiceRequest as JSON.
std::string traces_request(std::span<const Span> spans, const std::string& cluster);

}  // namespace tocsin::actions
