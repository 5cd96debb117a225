#include "actions/contract/common_config.h"

namespace tocsin::actions {

void read(config::Reader& in, CommonConfig& cfg) {
  using config::at_least;
  using config::positive;
  in.optional("id", cfg.id, "stable name of this integration; default <receiver>/<type>");
  in.optional("enabled", cfg.enabled, "false: keep the configuration, do nothing");
  in.optional("shadow", cfg.shadow, "decide and record, do not send");
  in.optional("send_resolved", cfg.send_resolved, "also tell when the issue is over");
  in.optional("when", cfg.when, "matchers that an issue must meet for this action");
  in.optional("timeout", cfg.timeout, positive(), "longest time of one attempt");
  in.optional("connect_timeout", cfg.connect_timeout, positive(),
              "longest time to get a connection");
  in.optional("max_age", cfg.max_age, positive(), "a message not delivered by then expires");
  in.optional("max_age_close", cfg.max_age_close, positive(),
              "the same for messages that close an incident");
  in.section("retry", "waits between attempts, with full jitter", [&](config::Reader& retry) {
    retry.optional("initial", cfg.retry.initial, positive(), "upper bound of the first wait");
    retry.optional("factor", cfg.retry.factor, at_least(1.0), "growth of that bound per attempt");
    retry.optional("max", cfg.retry.max, positive(), "the bound grows no further");
    retry.optional("max_attempts", cfg.retry.max_attempts, "0: until superseded or too old");
  });
  in.section("rate_limit", "token bucket of this integration", [&](config::Reader& limit) {
    limit.optional("rate", cfg.rate_limit.rate, at_least(0.0), "messages per `per`; 0: no limit");
    limit.optional("per", cfg.rate_limit.per, positive(), "time that `rate` counts");
    limit.optional("burst", cfg.rate_limit.burst, at_least<std::uint32_t>(1),
                   "messages that may go at once");
  });
  in.section("breaker", "stops calling a far side that is down", [&](config::Reader& breaker) {
    breaker.optional("failures", cfg.breaker.failures, at_least<std::uint32_t>(1),
                     "transient failures in a row that open it");
    breaker.optional("open", cfg.breaker.open, positive(), "first pause; it doubles");
    breaker.optional("max_open", cfg.breaker.max_open, positive(), "longest pause");
  });
  in.optional("standing_after", cfg.standing_after, positive(),
              "nothing arrived for so long while messages wait: told as delivery_standing");
  in.optional("config_hold", cfg.config_hold, positive(),
              "how long a wrong password, certificate or address is retried before giving up");
  in.optional("concurrency", cfg.concurrency, config::between<std::uint32_t>(1, 64),
              "groups in flight at once");
  in.optional("max_alerts", cfg.max_alerts, at_least<std::uint32_t>(1), "issues per message");
  in.optional("max_payload", cfg.max_payload, "largest message; beyond it the short form is sent");
  std::string on_unknown = cfg.retry_unknown ? "retry" : "drop";
  in.optional("on_unknown", on_unknown, config::one_of({"retry", "drop"}),
              "when bytes were sent and no answer came: again with the same id, or leave it");
  cfg.retry_unknown = on_unknown == "retry";
}

}  // namespace tocsin::actions
