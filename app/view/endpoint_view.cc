#include "app/view/endpoint_view.h"

#include <chrono>
#include <set>
#include <utility>

#include "app/view/topic_view.h"
#include "app/view/view_words.h"
#include "core/telemetry.h"
#include "core/text_table.h"
#include "core/topics.h"
#include "core/visible_text.h"

namespace tocsin::app {
namespace {

constexpr std::chrono::seconds kEndpointPatience{60};
constexpr std::size_t kMostOfAFailure = 160;

/// What the log of deliveries says of one integration.
struct Latest {
  std::optional<core::WallTime> success;
  std::optional<core::WallTime> failure;
  std::string why;
  std::string gone;  // the router gives up what comes: the far side is gone
};

core::Status read_topic(ingest::Transport& transport, const char* topic,
                        core::RecordHandler apply) {
  ingest::SourceOptions options;
  options.topics = {topic};
  options.start = ingest::Start::beginning;
  auto source = transport.source(std::move(options));
  if (!source) return source.error();
  return read_to_end(**source, apply, kEndpointPatience);
}

void note_latest(const core::Delivery& delivery, core::WallTime at, Latest& latest) {
  const bool gone = delivery.state == core::DeliveryState::dead && delivery.code == "disabled";
  latest.gone = gone ? delivery.detail : "";
  if (delivery.attempt == 0) return;
  if (delivery.outcome == core::OutcomeClass::delivered) {
    latest.success = at;
    return;
  }
  latest.failure = at;
  latest.why = std::string(to_string(delivery.outcome));
  if (!delivery.code.empty()) latest.why += ", " + delivery.code;
  if (!delivery.detail.empty()) latest.why += ": " + delivery.detail;
}

std::string finished_as(const std::string& id, std::string_view replay) {
  return replay.empty() ? id : id + " " + std::string(replay);
}

core::Value time_or_null(const std::optional<core::WallTime>& time) {
  return time ? core::Value(core::to_rfc3339(*time)) : core::Value();
}

/// The lanes of a router that starts now.
class StartingRouter {
 public:
  StartingRouter(const std::vector<actions::LaneOptions>& lanes, core::WallTime now)
      : lanes_(
            lanes, [] { return 0.5; }, telemetry_),
        now_(now) {}

  core::Status read(ingest::Transport& transport) {
    const auto delivered =
        read_topic(transport, core::topic::kRouterDeliveries, [&](const core::RecordView& record) {
          const auto delivery = ingest::decode_delivery(record);
          if (!delivery) return;
          lanes_.restore(*delivery);
          note_latest(*delivery, core::wall_time(record.timestamp), latest_[delivery->integration]);
          if (delivery->state == core::DeliveryState::pending) return;
          finished_.insert(finished_as(delivery->notification_id, actions::replay_of(*delivery)));
        });
    if (!delivered) return delivered;
    const auto waiting =
        read_topic(transport, core::topic::kRouterOutbox, [&](const core::RecordView& record) {
          auto notification = ingest::open_notification(record);
          if (!notification) return;
          const std::string replay(record.header(actions::kReplayHeader).value_or(""));
          if (finished_.contains(finished_as(notification->notification_id, replay))) return;
          lanes_.enqueue(std::move(*notification), now_, std::nullopt, replay);
        });
    if (!waiting) return waiting;
    return read_topic(transport, core::topic::kRouterControl, [&](const core::RecordView& record) {
      const std::string_view key = record.key.value_or("");
      if (!actions::is_endpoint_key(key)) return;
      const auto order = actions::read_endpoint_order(
          key, record.tombstone ? std::nullopt : std::optional(record.text()));
      if (!order) return;
      const auto failed = latest_[order->integration].failure;
      // A reset is done once: what failed since counts.
      if (order->lasts() || !failed || *failed < order->at) lanes_.order(*order, now_);
    });
  }
  [[nodiscard]] std::vector<actions::EndpointStand> stands() const { return lanes_.stands(); }
  [[nodiscard]] const Latest& latest(const std::string& integration) {
    return latest_[integration];
  }

 private:
  core::NullTelemetry telemetry_;
  actions::DeliveryLanes lanes_;
  core::WallTime now_;
  std::map<std::string, Latest> latest_;
  std::set<std::string> finished_;
};

}  // namespace

core::Result<std::vector<SeenEndpoint>> read_endpoints(
    ingest::Transport& transport, const std::vector<actions::LaneOptions>& lanes,
    const actions::ReceiversConfig& receivers, core::WallTime now) {
  StartingRouter router(lanes, now);
  if (auto read = router.read(transport); !read) return read.error();
  std::vector<SeenEndpoint> out;
  for (actions::EndpointStand& stand : router.stands()) {
    SeenEndpoint one;
    for (const auto& integration : receivers.integrations) {
      if (integration.common.id != stand.integration) continue;
      one.type = integration.type;
      one.receiver = integration.receiver;
      one.enabled = integration.common.enabled;
      one.shadow = integration.common.shadow;
    }
    const Latest& latest = router.latest(stand.integration);
    one.last_success = latest.success;
    one.last_failure = latest.failure;
    one.failure = latest.why;
    if (stand.switched_off.empty()) stand.switched_off = latest.gone;
    one.stand = std::move(stand);
    out.push_back(std::move(one));
  }
  return out;
}

std::string endpoint_state(const SeenEndpoint& endpoint, core::WallTime now) {
  const actions::EndpointStand& stand = endpoint.stand;
  if (!endpoint.enabled) return "not enabled: enabled: false in the configuration";
  if (endpoint.shadow) return "shadow: decided and recorded, not sent";
  if (!stand.held.empty()) return "off: " + stand.held;
  if (!stand.switched_off.empty()) return "gone: " + stand.switched_off;
  if (stand.paused > now)
    return "paused: the far side asked to wait until " + core::to_rfc3339(stand.paused);
  if (stand.breaker == "closed") return "ready";
  return "breaker " + stand.breaker +
         (stand.until > now ? ": next probe by " + core::to_rfc3339(stand.until) : ": probing");
}

bool is_unwell(const SeenEndpoint& endpoint, core::WallTime now) {
  return endpoint.enabled && !endpoint.shadow && endpoint_state(endpoint, now) != "ready";
}

std::string endpoints_text(const std::vector<SeenEndpoint>& endpoints, core::WallTime now) {
  std::vector<core::TableRow> rows{
      {"INTEGRATION", "TYPE", "WAITING", "OLDEST", "LAST SUCCESS", "LAST FAILURE", "STATE"}};
  for (const SeenEndpoint& one : endpoints) {
    const auto ago_or_none = [&](const std::optional<core::WallTime>& time) {
      return time ? ago(*time, now) : std::string("-");
    };
    rows.push_back({core::visible(one.stand.integration, 80), one.type,
                    std::to_string(one.stand.waiting), ago_or_none(one.stand.oldest),
                    ago_or_none(one.last_success), ago_or_none(one.last_failure),
                    core::visible(endpoint_state(one, now), kMostOfAFailure)});
  }
  std::string out = core::text_table(rows);
  for (const SeenEndpoint& one : endpoints) {
    const bool failing =
        one.last_failure && (!one.last_success || *one.last_failure > *one.last_success);
    if (!failing) continue;
    out += core::visible(one.stand.integration, 80) +
           " fails: " + core::visible(one.failure, kMostOfAFailure) + "\n";
  }
  return out;
}

core::Value endpoints_value(const std::vector<SeenEndpoint>& endpoints, core::WallTime now) {
  core::ValueList out;
  for (const SeenEndpoint& one : endpoints) {
    const actions::EndpointStand& stand = one.stand;
    const std::string state = endpoint_state(one, now);
    out.push_back(core::ValueMap{
        {"integration", stand.integration},
        {"type", one.type},
        {"receiver", one.receiver},
        {"state", state.substr(0, state.find(':'))},
        {"why", state.find(": ") == state.npos ? "" : state.substr(state.find(": ") + 2)},
        {"breaker", stand.breaker},
        {"paused_until",
         stand.paused > now ? core::Value(core::to_rfc3339(stand.paused)) : core::Value()},
        {"waiting", static_cast<std::uint64_t>(stand.waiting)},
        {"oldest_waiting", time_or_null(stand.oldest)},
        {"last_success", time_or_null(one.last_success)},
        {"last_failure", time_or_null(one.last_failure)},
        {"failure", one.failure}});
  }
  return out;
}

}  // namespace tocsin::app
