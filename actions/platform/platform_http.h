// What platforms that are spoken to over HTTP share: where, by which credential, and the answer as
// JSON. Internal to actions.
#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "actions/integration/aws_login.h"
#include "actions/platform/platform_stop.h"
#include "actions/transport/http_client.h"
#include "config/config.h"
#include "core/value.h"

namespace tocsin::actions {

/// The keys of every such platform.
struct PlatformPlace {
  std::string url;
  config::Secret token;
  std::vector<std::string> allow_private{"10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16",
                                         "100.64.0.0/10", "fc00::/7"};
  config::Secret proxy;
  TlsFiles tls;
  AddressGuard guard;  // made from allow_private
  core::Duration timeout = std::chrono::seconds(5);
};

enum class PlaceKey { none, optional, required };
/// Declares `url`, `token` (or `token_file`) as they are asked for, `allow_private`, `proxy`, `tls`,
/// `timeout`.
void read_place(config::Reader& in, PlatformPlace& place, PlaceKey url, PlaceKey token);

struct PlatformReply {
  int status = 0;          // 0: no answer
  core::Value json;        // null: the answer is none
  std::string body;        // masked, one line, its beginning
  std::string problem;     // of status 0: why; of others empty
  bool permanent = false;  // of status 0: waiting does not mend it
};

struct PlatformRequest {
  std::string method = "GET";
  std::string path;  // behind the URL, with its query
  std::vector<std::pair<std::string, std::string>> headers;
  std::string body;
  std::vector<std::string> secrets = {};  // that stand in it: masked in what comes back
  const AwsLogin* aws = nullptr;          // signs it, for this service
  std::string service = {};
};

/// Thread-safe.
class PlatformHttp {
 public:
  /// `http`: null for the real client.
  PlatformHttp(PlatformPlace place, HttpClient* http);
  /// `token_header`: how the token is sent; "authorization" puts "Bearer " before it.
  PlatformReply send(const PlatformRequest& request, std::chrono::milliseconds budget,
                     const std::string& token_header = "authorization");

 private:
  PlatformPlace place_;
  std::unique_ptr<HttpClient> owned_;
  HttpClient* http_;
};

/// 401, 403: denied. 0, 408, 429, 5xx and what nobody expects: unreachable (denied where waiting does
/// not mend it). `who`: the platform in words. `what`: what was asked.
PlatformAnswer not_answered(const PlatformReply& reply, const std::string& who,
                            const std::string& what);

/// JSON at "a.b.0.c": maps by key, lists by place. null: not there.
const core::Value* json_at(const core::Value& value, std::string_view path);
std::string json_text(const core::Value& value, std::string_view path);

}  // namespace tocsin::actions
