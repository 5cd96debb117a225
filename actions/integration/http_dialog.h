// One attempt as several requests: a search before a create, a result that is asked for later. Internal
// to actions.
#pragma once

#include <string>

#include "actions/contract/common_config.h"
#include "actions/message/rendered.h"
#include "actions/transport/http_client.h"
#include "core/action.h"
#include "core/notification.h"
#include "core/time.h"
#include "core/value.h"

namespace tocsin::actions {

/// What one request of a dialog asks.
struct HttpAsk {
  std::string method = "GET";
  std::string path = {};  // behind the path of `url`, with its query: "/requests/17"
  std::string body = {};
  std::string content_type = "application/json";
};

/// The requests of one attempt, in turn. Lives as long as the attempt, on its thread.
class HttpDialog {
 public:
  virtual ~HttpDialog() = default;

  [[nodiscard]] virtual const core::Notification& notification() const = 0;
  [[nodiscard]] virtual const Rendered& rendered() const = 0;
  [[nodiscard]] virtual core::WallTime now() const = 0;
  [[nodiscard]] virtual const CommonConfig& common() const = 0;
  /// retry.max_attempts lets no other attempt follow.
  [[nodiscard]] virtual bool last_attempt() const = 0;

  /// A request with the common headers and credentials (HttpIntegration::complete). It takes at most what
  /// is left of the attempt's time; if nothing is left, it is not sent and the result is `unreachable`.
  virtual HttpResult ask(const HttpAsk& ask) = 0;
  /// The rendered body in one request, as an integration that needs no dialog sends it.
  virtual core::AttemptOutcome deliver() = 0;

  /// What the attempt before left at this notification. It stands in memory and is bounded: a restart
  /// forgets it, so a far side that is asked again must not mind.
  [[nodiscard]] virtual std::string left() const = 0;
  /// For the next attempt; empty: nothing. A delivery forgets it.
  virtual void leave(std::string text) = 0;
};

/// A JSON answer; null: it is none.
core::Value json_answer(const HttpResponse& response);

}  // namespace tocsin::actions
