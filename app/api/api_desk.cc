#include "app/api/api_desk.h"

#include <algorithm>
#include <filesystem>
#include <utility>

#include "app/process/descriptor_limit.h"
#include "app/serve/local_token.h"

namespace tocsin::app {
namespace {

// A quarter of the descriptors at most: stages and their transport need the others.
StreamLimits stream_limits() {
  StreamLimits out;
  const auto share = static_cast<std::size_t>(std::max<std::uint64_t>(1, descriptor_limit() / 4));
  out.streams = std::min(out.streams, share);
  return out;
}

// A failure costs the token, not the server.
AccessConfig access_of(const AppConfig& config, core::Log& log, std::string& token_file) {
  AccessConfig out = config.http.access;
  if (config.transport.kafka.is_null() && config.transport.journal.empty()) return out;
  const auto folder = std::filesystem::path(insights_path(config, "")).parent_path();
  auto made = add_local_token(out, config.http.listen, folder.empty() ? "." : folder.string());
  if (made) {
    token_file = std::move(*made);
  } else {
    log.warn("api_local_token_missing", {{"error", made.error().message}});
  }
  return out;
}

}  // namespace

ApiDesk::ApiDesk(const AppConfig& config, ingest::Transport& transport,
                 const core::Clock& the_clock, core::Log& the_log, const std::string& host,
                 std::unique_ptr<const routing::Router> explaining, core::Telemetry& telemetry)
    : clock(the_clock),
      log(the_log),
      cluster(config.cluster),
      resolve_timeout(config.router.resolve_timeout),
      started(the_clock.now()),
      receivers(config.receivers.names),
      routing(std::move(explaining)),
      inhibit_rules(config.inhibit_rules),
      time_intervals(config.time_intervals),
      sessions(the_clock),
      brake(the_clock),
      access(access_of(config, the_log, local_token_file), config.http.listen, config.external_url,
             &sessions),
      streams(StreamHub::create(
          the_clock, stream_limits(),
          &telemetry.gauge("tocsin_insights_streams", "streams of new events that are open"))),
      feed(*streams, deliveries, commands, sight(), the_clock),
      view(transport, the_clock, the_log,
           {&deliveries, &commands, &audit, &told, &standing, &charts, &feed}),
      writer(transport, host),
      insights(config, transport, the_clock, the_log, *streams, pins, telemetry),
      curves(config, transport, the_clock, the_log, *streams, pins, telemetry) {}

core::OutRecord audit_of(const ApiCall& call, core::WallTime at, std::string what,
                         std::string subject, core::Value before, core::Value after) {
  AuditEntry entry;
  entry.at = at;
  entry.who = call.who.name;
  entry.role = to_string(call.who.role);
  entry.by = to_string(call.who.by);
  entry.source = call.request.client;
  entry.what = std::move(what);
  entry.subject = std::move(subject);
  entry.before = std::move(before);
  entry.after = std::move(after);
  return audit_record(entry);
}

}  // namespace tocsin::app
