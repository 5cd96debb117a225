// What every integration that speaks HTTP shares: its common keys, the short form of a message that
// is too large, the stored form, opened secrets and their redaction, the address guard,
// connections, and what an answer means. Internal to actions.
//
// An integration is a struct of its own keys that derives from HttpIntegration, with `render` and,
// where its far side needs it, `complete`, `classify` and `handles`; builtin/mattermost.cc is
// the plain one to copy, builtin/webhook.cc and builtin/alertmanager.cc show what else is possible.
#pragma once

#include <concepts>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "actions/contract/descriptor.h"
#include "actions/integration/http_settings.h"
#include "actions/integration/opened.h"
#include "actions/message/event_json.h"
#include "actions/message/rendered.h"
#include "actions/transport/http_client.h"

namespace tocsin::actions {

class HttpDialog;

/// What one attempt is made from.
struct HttpAttempt {
  const core::Notification& notification;
  const Rendered& rendered;
  core::WallTime now;
  Opened& opened;
};

using Handles = std::vector<std::pair<std::string, std::string>>;  // core::AttemptOutcome::handles

/// Checked configuration and behaviour of one integration: immutable, used from many threads.
class HttpIntegration : public ActionConfig, public std::enable_shared_from_this<HttpIntegration> {
 public:
  /// Pure: the body that every attempt sends, and the fields that `complete` needs. No credentials:
  /// it is stored. notification.minimal asks for the short form.
  [[nodiscard]] virtual Rendered render(const core::Notification& notification,
                                        const Sender& sender) const = 0;
  /// What an attempt adds to a request that holds url, body and the common headers: a path, a
  /// signature, credentials in the body. An error is a `configuration` outcome: nothing is sent.
  virtual core::Status complete(HttpRequest& /*request*/, const HttpAttempt& /*attempt*/) const {
    return core::ok();
  }
  /// Where a far side departs from the table of http_outcome.cc.
  [[nodiscard]] virtual core::AttemptOutcome classify(const HttpResult& result,
                                                      core::WallTime now) const {
    return actions::classify(result, now);
  }
  /// The bodies that carry a message, in turn, each with at most `limit` bytes where it can be cut.
  /// Empty: one, the rendered body; a message above max_payload has its short form then.
  [[nodiscard]] virtual std::vector<std::string> batches(const Rendered& /*rendered*/,
                                                         std::size_t /*limit*/) const {
    return {};
  }
  /// What is sent in place of a batch that was refused as bad: its halves, or less of one item.
  /// Empty: nothing can be.
  [[nodiscard]] virtual std::vector<std::string> in_place_of(const std::string& /*batch*/) const {
    return {};
  }
  [[nodiscard]] virtual bool sends_batches() const { return false; }
  /// What the far side calls what it was told; kept with the incident (Notification::handles).
  [[nodiscard]] virtual Handles handles(const HttpResponse& /*response*/,
                                        const core::Notification& /*notification*/) const {
    return {};
  }
  /// The far side no longer has what the handles of the incident name: the attempt is made again
  /// without them.
  [[nodiscard]] virtual bool lost(const HttpResponse& /*response*/) const { return false; }

  /// One attempt at a message that goes in no batches. An integration whose far side wants several
  /// requests asks them here, and gives the handles in the outcome (builtin/servicenow.cc); by default the
  /// rendered body is sent in one.
  [[nodiscard]] virtual core::AttemptOutcome carry_out(HttpDialog& dialog) const;

  /// The common keys, and between them those of the integration.
  void declare(config::Reader& in);
  [[nodiscard]] core::Result<std::unique_ptr<core::Action>> build(
      const Environment& environment, const IntegrationName& name,
      const CommonConfig& common) const final;
  [[nodiscard]] const HttpSettings& http() const { return http_; }

 protected:
  /// Declares the integration's own keys.
  virtual void keys(config::Reader& in) = 0;
  /// Problems that concern several keys, once all are read.
  virtual void check(config::Reader& /*in*/) const {}

  HttpSettings http_;
  std::string_view url_means_ = "where to post";
};

/// ActionDescriptor::read of such an integration.
template <std::derived_from<HttpIntegration> Integration>
std::shared_ptr<const ActionConfig> read_http(config::Reader& in) {
  auto integration = std::make_shared<Integration>();
  integration->declare(in);
  return integration;
}

}  // namespace tocsin::actions
